package gateway

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/toolset"
)

// visitor is a client over HTTP that keeps all that it gets. It answers each question with its name.
type visitor struct {
	*testing.T
	name    string
	http    *http.Client
	session string

	mu   sync.Mutex
	got  []string // the lines of all streams
	read sync.WaitGroup
}

// send sends a request over HTTP, with a message unless it is a GET. It returns the status, and reads the stream of the response.
func (v *visitor) send(ctx context.Context, method, message, event string) int {
	r, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1/mcp", strings.NewReader(message))
	require.NoError(v, err)
	if v.session != "" {
		r.Header.Set("Mcp-Session-Id", v.session)
		r.Header.Set("Mcp-Protocol-Version", mcpserver.Revisions[0])
	}
	if event != "" {
		r.Header.Set("Last-Event-ID", event)
	}
	resp, err := v.http.Do(r)
	require.NoError(v, err)
	if v.session == "" {
		v.session = resp.Header.Get("Mcp-Session-Id") // the first request is over before the others
	}
	v.read.Go(func() { v.readAll(resp.Body) })
	return resp.StatusCode
}

func (v *visitor) readAll(body io.ReadCloser) {
	defer body.Close()
	for lines := bufio.NewScanner(body); lines.Scan(); {
		v.mu.Lock()
		v.got = append(v.got, lines.Text())
		v.mu.Unlock()
		var m mcpserver.Message
		data, isData := strings.CutPrefix(lines.Text(), "data: ")
		if !isData || json.Unmarshal([]byte(data), &m) != nil || m.Method == "" || m.ID == nil {
			continue
		}
		v.answer(m.ID, map[string]string{
			"elicitation/create":     `{"action":"accept","content":{"name":"` + v.name + `"}}`,
			"sampling/createMessage": `{"role":"assistant","model":"m","content":{"type":"text","text":"` + v.name + `"}}`,
			"roots/list":             `{"roots":[{"uri":"file:///` + v.name + `"}]}`,
		}[m.Method])
	}
}

// answer answers a question.
func (v *visitor) answer(id json.RawMessage, result string) {
	v.send(v.Context(), http.MethodPost, `{"jsonrpc":"2.0","id":`+string(id)+`,"result":`+result+`}`, "")
}

// start sends a request.
func (v *visitor) start(id int, method, params string) {
	require.Equal(v, http.StatusOK, v.send(v.Context(), http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params), ""))
}

// call calls a tool with the name of the client as its word.
func (v *visitor) call(id int, tool string) {
	v.start(id, "tools/call", `{"name":"`+tool+`","arguments":{"word":"`+v.name+`"},"_meta":{"progressToken":1}}`)
}

// notify sends a notification.
func (v *visitor) notify(method, params string) {
	require.Equal(v, http.StatusAccepted, v.send(v.Context(), http.MethodPost, `{"jsonrpc":"2.0","method":"`+method+`","params":`+params+`}`, ""))
}

// count returns how many lines have a text.
func (v *visitor) count(text string) (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, line := range v.got {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// streams returns the names of all streams.
func (v *visitor) streams() (names []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, line := range v.got {
		if id, is := strings.CutPrefix(line, "id: "); is {
			name, _, _ := strings.Cut(id, "-")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// newEcho returns a server whose tools say the word of their caller in all ways.
func newEcho() *mcp.Server {
	s := withSessions(mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	}))
	s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "words", URITemplate: "file:///{word}"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) { return nil, nil })
	type in struct {
		Word string `json:"word"`
	}
	tool := func(name string, f func(context.Context, *mcp.CallToolRequest, string) (string, error)) {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(ctx context.Context, r *mcp.CallToolRequest, it in) (*mcp.CallToolResult, any, error) {
			text, err := f(ctx, r, it.Word)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, err
		})
	}
	tool("say", func(ctx context.Context, r *mcp.CallToolRequest, word string) (string, error) {
		r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Message: "progress of " + word})
		r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "log of " + word})
		time.Sleep(time.Second)
		return "result of " + word, nil
	})
	tool("ask", func(ctx context.Context, r *mcp.CallToolRequest, word string) (string, error) {
		schema := map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}}
		form, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "form of " + word, RequestedSchema: schema})
		if err != nil {
			return "", err
		}
		sample, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1, SystemPrompt: "sample of " + word, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: word}}}})
		if err != nil {
			return "", err
		}
		roots, err := r.Session.ListRoots(ctx, nil)
		if err != nil {
			return "", err
		}
		return fmt.Sprint("answers: ", form.Content["name"], " ", sample.Content.(*mcp.TextContent).Text, " ", roots.Roots[0].URI), nil
	})
	tool("wait", func(ctx context.Context, _ *mcp.CallToolRequest, word string) (string, error) {
		select {
		case <-time.After(10 * time.Second):
			return "end of " + word, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	tool("fail", func(_ context.Context, _ *mcp.CallToolRequest, word string) (string, error) {
		return "", fmt.Errorf("error of %s", word)
	})
	tool("later", func(ctx context.Context, r *mcp.CallToolRequest, word string) (string, error) {
		go func() {
			time.Sleep(time.Second)
			r.Session.Log(context.WithoutCancel(ctx), &mcp.LoggingMessageParams{Level: "info", Data: "late log of " + word})
		}()
		return "", nil
	})
	tool("touch", func(ctx context.Context, _ *mcp.CallToolRequest, word string) (string, error) {
		return "", s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "file:///" + word})
	})
	return s
}

// Two clients over HTTP do the same at the same time, with the same ids and tokens. Neither gets anything of the other: not
// even a word of it, in all that goes to it.
func TestNothingOfOneClientReachesAnother(t *testing.T) {
	for name, share := range map[string]string{"own": "", "shared": "all"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
				away, other, end := twoServers()
				defer end()
				other.Close()
				away.Stop()
				cfg := setup{Prefixed: true, Tools: []toolset.Filter{{Name: "echo", Scope: share}, {Name: "away", Scope: share}}}
				cfg.Supervisor.Servers = []mcpbridge.Server{{Name: "echo", InMemory: newEcho()}, remote("away", away)}
				w := worldOf(t, cfg)
				defer w.stop()
				e := w.HTTP("")
				front := faults.Local(func() http.Handler { return e })
				defer front.Close()
				defer e.Close()
				one := &visitor{T: t, name: "adelheid", http: &http.Client{Transport: front}}
				two := &visitor{T: t, name: "bartholomew", http: &http.Client{Transport: front}}
				both := func(do func(v *visitor)) {
					var done sync.WaitGroup
					for _, v := range []*visitor{one, two} {
						done.Go(func() { do(v) })
					}
					done.Wait()
					time.Sleep(30 * time.Second) // also a call of a server that is away is over
				}
				ctx, leave := context.WithCancel(t.Context())
				both(func(v *visitor) {
					v.start(1, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"sampling":{},"roots":{}},"clientInfo":{"name":"`+v.name+`","version":"1"}}`)
				})
				both(func(v *visitor) {
					v.notify("notifications/initialized", "{}")
					require.Equal(t, http.StatusOK, v.send(ctx, http.MethodGet, "", ""))
					v.start(2, "logging/setLevel", `{"level":"info"}`)
					v.start(3, "resources/subscribe", `{"uri":"file:///`+v.name+`"}`)
				})
				if share == "" {
					both(func(v *visitor) { v.call(4, "echo__say") })
					both(func(v *visitor) { v.call(5, "echo__ask") })
					both(func(v *visitor) { v.call(6, "echo__later") })
				} else { // a session that clients share asks nobody, and knows the call of a log only if it has one
					for _, v := range []*visitor{one, two} {
						v.call(4, "echo__say")
						time.Sleep(2 * time.Second)
					}
				}
				both(func(v *visitor) { v.call(7, "echo__fail") })
				both(func(v *visitor) { v.call(8, "away__count") })
				both(func(v *visitor) { v.start(9, "prompts/get", `{"name":"away__greet"}`) })

				// What belongs to a subscription reaches who has it. Another cannot end it.
				two.start(10, "resources/unsubscribe", `{"uri":"file:///adelheid"}`)
				both(func(v *visitor) { v.call(11, "echo__touch") })

				// Only the own call is cancelled.
				both(func(v *visitor) {
					v.call(12, "echo__wait")
					if v == two {
						v.notify("notifications/cancelled", `{"requestId":12}`)
					}
				})

				// A stream is resumed by its own client only, also if another knows the name.
				streams := append(one.streams(), two.streams()...)
				require.Greater(t, len(streams), 10)
				for _, name := range streams {
					require.Equal(t, http.StatusOK, two.send(t.Context(), http.MethodGet, "", name+"-0"))
				}
				leave()
				stranger := &visitor{T: t, name: "clotilde", http: one.http, session: two.session[1:]}
				require.Equal(t, http.StatusNotFound, stranger.send(t.Context(), http.MethodGet, "", "2-0"))
				require.Equal(t, http.StatusNotFound, stranger.send(t.Context(), http.MethodDelete, "", ""))

				// The end of a client does not disturb another.
				one.call(13, "echo__wait")
				require.Equal(t, http.StatusOK, two.send(t.Context(), http.MethodDelete, "", ""))
				time.Sleep(time.Minute)

				require.Equal(t, 1, one.count("progress of adelheid"))
				require.Equal(t, 1, one.count(`"log of adelheid`))
				require.Equal(t, 1, one.count("result of adelheid"))
				if share == "" {
					require.Equal(t, 1, one.count("late log of adelheid"))
					require.Equal(t, 1, one.count("form of adelheid"))
					require.Equal(t, 1, one.count("sample of adelheid"))
					require.Equal(t, 1, one.count("answers: adelheid adelheid file:///adelheid"))
					require.Positive(t, two.count("answers: bartholomew bartholomew file:///bartholomew"))
				}
				require.Equal(t, 1, one.count("error of adelheid"))
				require.Equal(t, 1, one.count(`notifications/resources/updated`))
				require.Equal(t, 2, one.count("end of adelheid"))
				require.Positive(t, two.count("result of bartholomew"))
				require.Zero(t, two.count("end of bartholomew"), "it was cancelled")
				for v, others := range map[*visitor]string{one: two.name, two: one.name} {
					require.Zero(t, v.count(others), "%s got: %s", v.name, strings.Join(v.got, "\n"))
				}
				e.Close()
				one.read.Wait()
				two.read.Wait()
			})
		})
	}
}

// apart sends what is for the path of one client to a server of its own, and all else to another server.
type apart struct{ one, others *faults.Server }

func (a *apart) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/alice") {
		return a.one.RoundTrip(r)
	}
	return a.others.RoundTrip(r)
}

// What one client learns of the place where it reaches a server concerns no client that reaches the server elsewhere: neither that it is
// down, and why, nor that it was silent.
func TestClientsWithPlacesOfTheirOwnLearnNothingFromEachOther(t *testing.T) {
	for name, fault := range map[string]func() faults.Fault{
		"down": func() faults.Fault {
			return faults.Refuse(http.StatusServiceUnavailable, "the account of alice is locked")
		},
		"silent": faults.Hang,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
				one, others, end := twoServers()
				defer end()
				one.Inject("initialize", fault())
				others.Inject("initialize", faults.Delay(3*time.Second))
				srv := remote("s", others)
				srv.HTTPClient = &http.Client{Transport: &apart{one, others}}
				first := ""
				srv.PerKey = func(_ context.Context, key messages.Key) (mcpbridge.Server, error) {
					its := srv
					if first = cmp.Or(first, key.Scope); key.Scope == first {
						its.URL += "/alice"
					}
					return its, nil
				}
				cfg := setup{Wait: 5 * time.Second, Tools: []toolset.Filter{{Name: "s"}}}
				cfg.Supervisor.Servers = []mcpbridge.Server{srv}
				w := worldOf(t, cfg)
				w.silent = map[string]int{"silent": 1}[name]
				defer w.stop()
				alice, bob := w.raw(), w.raw()
				alice.opens()
				_, answer := alice.lists("tools/list")
				require.NotNil(t, answer.Error)
				took, said := bob.opens()
				require.Equal(t, 3*time.Second, took)
				require.Contains(t, said, `"name":"faults"`)
				_, answer = bob.lists("tools/list")
				require.Nil(t, answer.Error)
			})
		})
	}
}
