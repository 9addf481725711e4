package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// scripted is a handler in the same process as its client. It notes what it is called for.
type scripted struct {
	*Client
	handle func(*scripted, *Request) (any, error)
	mu     sync.Mutex
	notes  []string
}

func (s *scripted) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, what)
}

// noted returns what was noted since the last time.
func (s *scripted) noted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	notes := s.notes
	s.notes = nil
	return notes
}

func (s *scripted) Handle(r *Request) (any, error) {
	s.note(r.Method)
	r.Pass()
	if s.handle != nil {
		if result, err := s.handle(s, r); result != nil || err != nil {
			return result, err
		}
	}
	if r.Method == "initialize" {
		version, _ := Encode(ObjectOf(r.Params).Text("protocolVersion"))
		return json.RawMessage(`{"protocolVersion":` + string(version) + `,"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"local","version":"1"}}`), nil
	}
	return json.RawMessage(`{"content":[{"type":"text","text":"done"}]}`), nil
}

func (s *scripted) Notified(m *Message) { s.note(m.Method + string(m.Params)) }

func (s *scripted) Left(forGood bool) { s.note("left " + strconv.FormatBool(forGood)) }

// local is a transport with one connection.
type local struct{ mcp.Connection }

func (l local) Connect(context.Context) (mcp.Connection, error) { return l.Connection, nil }

// accepted returns the connection of a client, and its handler.
func accepted(handle func(*scripted, *Request) (any, error)) (mcp.Connection, *scripted) {
	s := &scripted{handle: handle}
	return Connect(func(c *Client) Handler {
		s.Client = c
		return s
	}), s
}

// joined returns a session of a client in this process, which has the connection, and its handler.
func joined(t *testing.T, options *mcp.ClientOptions, handle func(*scripted, *Request) (any, error)) (*mcp.ClientSession, mcp.Connection, *scripted) {
	connection, s := accepted(handle)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, options).Connect(t.Context(), local{connection}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { session.Close() })
	synctest.Wait() // what comes before the end of initialize is held back
	s.noted()
	return session, connection, s
}

var callAny = &mcp.CallToolParams{Name: "any"}

func TestClientInThisProcessIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connection, s := accepted(nil)
		session, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil).Connect(t.Context(), local{connection}, nil)
		require.NoError(t, err)
		require.Equal(t, "2025-11-25", session.InitializeResult().ProtocolVersion)
		synctest.Wait()
		require.Equal(t, []string{"initialize", "notifications/initialized{}"}, s.noted(), "server/discover was refused before")
		require.Empty(t, session.ID())
		require.NoError(t, session.Ping(t.Context(), nil))
		result, err := session.CallTool(t.Context(), callAny)
		require.NoError(t, err)
		require.Equal(t, "done", result.Content[0].(*mcp.TextContent).Text)
		require.Equal(t, []string{"tools/call"}, s.noted())
		require.NoError(t, session.Close())
		require.Equal(t, []string{"left true"}, s.noted())
		_, err = session.CallTool(t.Context(), callAny)
		require.ErrorIs(t, err, mcp.ErrConnectionClosed)
	})
}

func TestClientInThisProcessChoosesTheRevision(t *testing.T) {
	for _, version := range Revisions {
		synctest.Test(t, func(t *testing.T) {
			connection, s := accepted(nil)
			client := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), local{connection}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			require.NoError(t, err)
			require.Equal(t, version, session.InitializeResult().ProtocolVersion)
			synctest.Wait()
			require.Equal(t, []string{"initialize", "notifications/initialized{}"}, s.noted())
			session.Close()
		})
	}
}

// odd is an error of a type of its own, with a cause.
type odd struct {
	key   string
	cause error
}

func (o *odd) Error() string { return "odd: " + o.key }

func (o *odd) Unwrap() error { return o.cause }

// The error of a handler reaches a client in this process as it is, whatever it asked for. Nothing in it is taken for the end
// of the client's own connection.
func TestErrorOfAHandlerIsThatOfItsClient(t *testing.T) {
	rejected := errors.New("rejected")
	causes := append([]error{nil, rejected, &jsonrpc.Error{Code: -32099}, fmt.Errorf("other: %w", mcp.ErrConnectionClosed)}, ofConnections...)
	for _, cause := range causes {
		for _, method := range []string{"initialize", "tools/list", "tools/call"} {
			synctest.Test(t, func(t *testing.T) {
				connection, s := accepted(func(_ *scripted, r *Request) (any, error) {
					if r.Method == method {
						return nil, fmt.Errorf("outer: %w", errors.Join(&odd{"a key", cause}, rejected))
					}
					return nil, nil
				})
				session, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil).Connect(t.Context(), local{connection}, nil)
				switch method {
				case "tools/list":
					require.NoError(t, err)
					_, err = session.ListTools(t.Context(), nil)
				case "tools/call":
					require.NoError(t, err)
					_, err = session.CallTool(t.Context(), callAny)
				}
				var found *odd
				require.ErrorAs(t, err, &found)
				require.Equal(t, "a key", found.key)
				require.ErrorIs(t, err, rejected)
				require.ErrorContains(t, err, `calling "`+method+`": outer: odd: a key`)
				for _, end := range ofConnections {
					require.NotErrorIs(t, err, end)
				}
				var said, meant *jsonrpc.Error
				if errors.As(cause, &meant) {
					require.ErrorAs(t, err, &said)
					require.Same(t, meant, said)
				}
				if method != "initialize" {
					require.NoError(t, session.Ping(t.Context(), nil))
					session.Close()
				}
				require.Contains(t, s.noted(), "left true")
			})
		}
	}
}

// The end of a call's context ends that of the request, which has no response.
func TestClientInThisProcessCancelsACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		session, connection, s := joined(t, nil, func(s *scripted, r *Request) (any, error) {
			if r.Method == "tools/call" {
				<-r.Context.Done()
				s.note("ended")
				return nil, r.Context.Err()
			}
			return nil, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := session.CallTool(ctx, callAny)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		require.Equal(t, []string{"tools/call", "ended"}, s.noted())
		require.Empty(t, connection.(*memoryLink).sent)
		require.Empty(t, s.running)
	})
}

// A client answers questions. It is told that a question was withdrawn.
func TestClientInThisProcessIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		withdrawn := make(chan struct{})
		options := &mcp.ClientOptions{ElicitationHandler: func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			switch r.Params.Message {
			case "wait":
				<-ctx.Done()
				close(withdrawn)
				return nil, ctx.Err()
			case "fail":
				return nil, errors.New("nobody is there")
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"said": r.Params.Message}}, nil
		}}
		session, _, s := joined(t, options, func(s *scripted, r *Request) (any, error) {
			if r.Method != "tools/call" {
				return nil, nil
			}
			ctx, cancel := context.WithTimeout(r.Context, time.Second)
			defer cancel()
			question, _ := Encode(map[string]any{
				"message": ObjectOf(r.Params).Text("name"), "requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}},
			})
			answer, err := s.Ask(ctx, "elicitation/create", question, r)
			if err != nil {
				return nil, err
			}
			s.note(string(answer))
			return nil, nil
		})
		_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "<b>"})
		require.NoError(t, err)
		require.Equal(t, []string{"tools/call", `{"action":"accept","content":{"said":"<b>"}}`}, s.noted())
		_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "fail"})
		require.ErrorContains(t, err, "nobody is there")
		_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "wait"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		<-withdrawn
		synctest.Wait()
		require.Empty(t, s.asked)
		s.noted()

		_, err = s.Ask(t.Context(), "unknown/method", nil, nil)
		var said *jsonrpc.Error
		require.ErrorAs(t, err, &said)
		require.EqualValues(t, jsonrpc.CodeMethodNotFound, said.Code)
		require.Contains(t, said.Message, "unknown/method")
	})
}

// What is written one after another is taken in that order, in both directions.
func TestMessagesInThisProcessStayInOrder(t *testing.T) {
	const many = 1000
	synctest.Test(t, func(t *testing.T) {
		var came []string
		changed := 0
		session, _, s := joined(t, &mcp.ClientOptions{
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed++ },
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
				came = append(came, r.Params.Message)
			},
		}, nil)
		var want, progress []string
		for i := range many {
			message := strconv.Itoa(i)
			if i%10 == 0 {
				go session.CallTool(t.Context(), callAny)
				synctest.Wait()
				want = append(want, "tools/call")
			}
			require.NoError(t, session.NotifyProgress(t.Context(), &mcp.ProgressNotificationParams{ProgressToken: "a", Message: message}))
			want = append(want, `notifications/progress{"progressToken":"a","message":"`+message+`","progress":0}`)
			s.Notify("notifications/progress", map[string]any{"progressToken": "a", "message": message}, nil)
			progress = append(progress, message)
		}
		s.Notify("notifications/tools/list_changed", nil, nil)
		synctest.Wait()
		require.Equal(t, want, s.noted())
		require.Equal(t, progress, came)
		require.Equal(t, 1, changed)
	})
}

// A handler never waits for a client, and calls go on while the client is slow with notifications.
func TestSlowClientInThisProcessHoldsUpNobody(t *testing.T) {
	const many = 10_000
	synctest.Test(t, func(t *testing.T) {
		came := 0
		session, _, s := joined(t, &mcp.ClientOptions{ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) {
			time.Sleep(time.Second)
			came++
		}}, nil)
		began := time.Now()
		for range many {
			s.Notify("notifications/progress", json.RawMessage(`{"progressToken":"a","progress":1}`), nil)
		}
		_, err := session.CallTool(t.Context(), callAny)
		require.NoError(t, err)
		require.Equal(t, began, time.Now())
		time.Sleep((many + 1) * time.Second)
		synctest.Wait()
		require.Equal(t, many, came)
	})
}

func TestClientInThisProcessCallsAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		session, _, _ := joined(t, nil, func(_ *scripted, r *Request) (any, error) {
			if r.Method != "tools/call" {
				return nil, nil
			}
			time.Sleep(time.Second)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: ObjectOf(r.Params).Text("name")}}}, nil
		})
		began := time.Now()
		var calls sync.WaitGroup
		for i := range 100 {
			calls.Go(func() {
				for n := range 10 {
					name := fmt.Sprint(i, n)
					result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
					require.NoError(t, err)
					require.Equal(t, name, result.Content[0].(*mcp.TextContent).Text)
				}
			})
		}
		calls.Wait()
		require.Equal(t, 10*time.Second, time.Since(began))
	})
}

// Close ends calls and questions at once, although nobody reads, and a handler that does not heed its context may go on.
func TestCloseInThisProcessEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		session, connection, s := joined(t, &mcp.ClientOptions{ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}, func(s *scripted, r *Request) (any, error) {
			switch ObjectOf(r.Params).Text("name") {
			case "ask":
				_, err := s.Ask(context.Background(), "elicitation/create", json.RawMessage(`{"message":"a","requestedSchema":{"type":"object","properties":{}}}`), r)
				s.note(err.Error())
				return nil, err
			case "wait":
				<-r.Context.Done()
				time.Sleep(time.Minute)
			}
			return nil, nil
		})
		began := time.Now()
		ended := make(chan error, 2)
		for _, name := range []string{"ask", "wait"} {
			go func() {
				_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
				ended <- err
			}()
		}
		synctest.Wait()
		s.noted()
		for range 2 {
			require.NoError(t, connection.Close())
		}
		for range 2 {
			err := <-ended
			require.ErrorIs(t, err, io.EOF)
			require.NotErrorIs(t, err, mcp.ErrConnectionClosed, "it was sent")
		}
		synctest.Wait()
		require.ElementsMatch(t, []string{"left true", errDeaf.Error()}, s.noted())
		require.Equal(t, began, time.Now())
		s.Notify("notifications/progress", nil, nil)
		require.ErrorIs(t, connection.Write(t.Context(), &jsonrpc.Request{Method: "ping"}), mcp.ErrConnectionClosed)
		_, err := connection.Read(t.Context())
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, session.Close())
		time.Sleep(time.Minute) // until the handler ends, or else its goroutine would be left
		synctest.Wait()
		require.Empty(t, s.noted())
		require.Empty(t, connection.(*memoryLink).sent)
	})
}

// What was sent before the end is read before it. Without a message, Read ends with its context.
func TestConnectionInThisProcessIsReadToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connection, s := accepted(nil)
		s.Notify("first", nil, nil)
		first, err := connection.Read(t.Context())
		require.NoError(t, err)
		require.Equal(t, &jsonrpc.Request{Method: "first"}, first)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = connection.Read(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, connection.Write(ctx, &jsonrpc.Request{Method: "late"}), context.DeadlineExceeded)
		require.Empty(t, s.noted())
		s.Notify("second", json.RawMessage(`{"a":1}`), nil)
		connection.Close()
		second, err := connection.Read(t.Context())
		require.NoError(t, err)
		require.Equal(t, &jsonrpc.Request{Method: "second", Params: json.RawMessage(`{"a":1}`)}, second)
		_, err = connection.Read(t.Context())
		require.ErrorIs(t, err, io.EOF)
	})
}

// The ids and the params of the SDK become those of JSON, and the other way round.
func TestMessagesOfTheSDKAreTheSameAsJSON(t *testing.T) {
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"b":"<c>"}}`,
		`{"jsonrpc":"2.0","id":9007199254740991,"method":"a"}`,
		`{"jsonrpc":"2.0","id":"\"<é>\\","method":"a"}`,
		`{"jsonrpc":"2.0","id":"","method":"a"}`,
		`{"jsonrpc":"2.0","method":"a"}`,
		`{"jsonrpc":"2.0","id":"a","result":{"b":[1]}}`,
		`{"jsonrpc":"2.0","id":-1,"error":{"code":1,"message":"no","data":[2]}}`,
	} {
		message, err := jsonrpc.DecodeMessage([]byte(text))
		require.NoError(t, err)
		m := fromSDK(message)
		line, err := m.encode()
		require.NoError(t, err)
		require.Equal(t, text, string(line))
		require.Equal(t, message, m.toSDK())
	}
	none := fromSDK(&jsonrpc.Request{Method: "a", Params: json.RawMessage("null")})
	require.Nil(t, none.Params, "as over the other links")
	wrapped := fromSDK(&jsonrpc.Response{Error: fmt.Errorf("b: %w", &jsonrpc.Error{Code: 7, Message: "a"})})
	require.Equal(t, &jsonrpc.Error{Code: 7, Message: "b: a"}, wrapped.Error)
}

// What is JSON already is not copied, and what is none is an error of the request.
func TestResultThatIsJSONIsNotCopied(t *testing.T) {
	raw := json.RawMessage("{\n\"a\": 1}")
	same, err := encoded(raw)
	require.NoError(t, err)
	require.Same(t, &raw[0], &same[0])
	line, err := (&Message{ID: json.RawMessage("1"), Result: same}).encode()
	require.NoError(t, err)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`, string(line), "on one line")
	for _, none := range []json.RawMessage{nil, json.RawMessage("{")} {
		same, err = encoded(none)
		require.True(t, err != nil || slices.Equal(same, []byte("null")))
	}
}

// A call in this process, beside one over the in-memory transports of the SDK with its own server.
func BenchmarkCall(b *testing.B) {
	run := func(b *testing.B, transport mcp.Transport) {
		session, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil).
			Connect(b.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: Revisions[0]})
		require.NoError(b, err)
		defer session.Close()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := session.CallTool(b.Context(), callAny); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("server=ours/transport=connect", func(b *testing.B) {
		connection, _ := accepted(nil)
		run(b, local{connection})
	})
	b.Run("server=sdk/transport=memory", func(b *testing.B) {
		server := mcp.NewServer(&mcp.Implementation{Name: "local", Version: "1"}, nil)
		server.AddTool(&mcp.Tool{Name: "any", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
		})
		client, own := mcp.NewInMemoryTransports()
		_, err := server.Connect(b.Context(), own, nil)
		require.NoError(b, err)
		run(b, client)
	})
}
