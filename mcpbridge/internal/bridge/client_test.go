package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/messages"
)

// asking returns a puppet whose client can do everything, and that answers what it
// is asked with a function.
func asking(ask func(context.Context, messages.Request, messages.Operation) messages.Answer) *puppet {
	return &puppet{
		capabilities: &mcp.ClientCapabilities{
			Elicitation: &mcp.ElicitationCapabilities{}, Sampling: &mcp.SamplingCapabilities{}, RootsV2: &mcp.RootCapabilities{},
		},
		ask: ask, answered: make(chan []byte, 1000),
	}
}

func (p *puppet) say(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

// What a server sends may lack what it must have, which the SDK's handlers do not
// look for.
func TestServerThatSaysAndAsksNonsenseIsSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := asking(func(context.Context, messages.Request, messages.Operation) messages.Answer { return nil })
		c, e := p.dial(t.Context(), 1<<20)
		require.Nil(t, e)
		id := 0
		for _, params := range []string{``, `,"params":null`, `,"params":{}`, `,"params":[]`, `,"params":7`, `,"params":{"mode":"odd","requestedSchema":7,"messages":null,"progressToken":{}}`} {
			for _, method := range []string{
				"elicitation/create", "sampling/createMessage", "roots/list", "ping", "nonsense",
			} {
				id++
				p.say(`{"jsonrpc":"2.0","id":%d,"method":%q%s}`, id, method, params)
			}
			for _, method := range []string{
				"notifications/message", "notifications/progress", "notifications/resources/updated", "notifications/cancelled",
				"notifications/tools/list_changed", "notifications/elicitation/complete", "notifications/subscriptions/acknowledged", "notifications/nonsense",
			} {
				p.say(`{"jsonrpc":"2.0","method":%q%s}`, method, params)
			}
		}
		synctest.Wait()
		require.Len(t, p.answered, id, "each request has an answer")
		_, err := c.Do(t.Context(), toolCall())
		require.NoError(t, err, "and the session goes on")
		require.NoError(t, c.Close(t.Context()))
	})
}

func TestServerThatAsksTooMuchIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := asking(func(ctx context.Context, _ messages.Request, _ messages.Operation) messages.Answer {
			<-ctx.Done()
			return &messages.Refusal{Reason: "cut off"}
		})
		c, e := p.dial(t.Context(), 1<<20)
		require.Nil(t, e)
		for i := range 2 * maxAsked {
			p.say(`{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"message":"?"}}`, i)
		}
		synctest.Wait()
		require.Len(t, p.answered, maxAsked)
		require.Contains(t, string(<-p.answered), "waiting for an answer already")
		require.NoError(t, c.Close(t.Context())) // which ends those that wait
		synctest.Wait()
		require.Zero(t, c.callbacks.owner.asked.Load())
	})
}

func TestServerMayCancelWhatItAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended error
		p := asking(func(ctx context.Context, _ messages.Request, _ messages.Operation) messages.Answer {
			<-ctx.Done()
			ended = ctx.Err()
			return &messages.Refusal{}
		})
		c, e := p.dial(t.Context(), 1<<20)
		require.Nil(t, e)
		p.say(`{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"?"}}`)
		synctest.Wait()
		require.NoError(t, ended)
		p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
		synctest.Wait()
		require.ErrorIs(t, ended, context.Canceled)
		require.NoError(t, c.Close(t.Context()))
	})
}

// A stream of subscriptions that was cut may have missed something.
func TestListenStreamIsOpenedAgainAndTellsWhatItMayHaveMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var heard []string
		listens := 0
		s := newScript()
		discovered := `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"x","version":"1"}}}`
		s.answer("server/discover", func(r *http.Request) (*http.Response, error) {
			return says(200, outbound.TypeJSON, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, rpc.Parse(rpc.BodyOf(r)).ID, discovered))(r)
		})
		s.answer(rpc.MethodListen, func(r *http.Request) (*http.Response, error) {
			var msg struct{ Params mcp.SubscriptionsListenParams }
			require.NoError(t, json.Unmarshal(rpc.BodyOf(r), &msg))
			require.True(t, msg.Params.Notifications.ToolsListChanged)
			mu.Lock()
			listens++
			n := listens
			mu.Unlock()
			switch n {
			case 1, 3:
				return breaks("event: message\ndata: " + `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n\n")(r)
			case 2:
				return nil, io.ErrUnexpectedEOF
			}
			return stays("")(r)
		})
		srv := mcpbridge.Server{Name: "test", URL: "http://test/mcp", HTTPClient: &http.Client{Transport: s}}
		c, err := New([]mcpbridge.Server{srv}, nil).Dial(t.Context(), dial.Request{
			Key: messages.Key{Server: "test"}, Down: func(e *mcpbridge.Error) { t.Errorf("down: %v", e) },
			Heard: func(n messages.Notification, _ messages.Operation) {
				mu.Lock()
				defer mu.Unlock()
				heard = append(heard, fmt.Sprintf("%T", n)[len("*messages."):])
			},
		})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		mu.Lock()
		require.Equal(t, 4, listens)
		require.Equal(t, []string{"ToolsChanged", "ToolsChanged", "ToolsChanged", "ToolsChanged"}, heard, "two that came, two that may have been missed")
		mu.Unlock()
		require.NoError(t, c.Close(t.Context()))
	})
}

func TestOldProtocolsAreRememberedUntilTheServerIsAnother(t *testing.T) {
	old := func(version string) *mcp.InitializeResult {
		return &mcp.InitializeResult{ProtocolVersion: "2025-06-18", ServerInfo: &mcp.Implementation{Name: "s", Version: version}}
	}
	at := newEndpoint(mcpbridge.Server{Name: "s", URL: "http://test"})
	require.Empty(t, at.version(nil), "the newest is tried first")
	at.dialect.learn("", false, old("1"))
	require.Equal(t, protocolLegacy, at.version(nil))
	at.dialect.learn(protocolLegacy, false, old("1"))
	require.Equal(t, protocolLegacy, at.version(nil))
	at.dialect.learn(protocolLegacy, false, old("2"))
	require.Empty(t, at.version(nil), "another version of the server may know more")
	at.dialect.learn("", false, old("2"))
	require.Equal(t, protocolLegacy, at.version(nil))
	at.dialect.facts.Asked = time.Now().Add(-legacyFor).Unix()
	require.Empty(t, at.version(nil), "it is asked again now and then")
	at.dialect.learn("", false, old("2"))
	at.dialect.unlearn()
	require.Empty(t, at.version(nil))
	at.dialect.learn("", false, &mcp.InitializeResult{ProtocolVersion: "2026-07-28"})
	require.Empty(t, at.version(nil))
	require.Equal(t, "2025-03-26", at.version(&mcpbridge.Resume{Server: &mcp.InitializeResult{ProtocolVersion: "2025-03-26"}}), "a session keeps its own")
	at.ProtocolVersion = "2024-11-05"
	at.dialect.learn("", false, old("1"))
	require.Equal(t, "2024-11-05", at.version(nil), "the configuration comes first")

	silent := newEndpoint(mcpbridge.Server{Name: "s", URL: "http://test"})
	silent.dialect.setLegacy(false)
	silent.dialect.learn(protocolLegacy, false, old("1"))
	require.Equal(t, protocolLegacy, silent.version(nil))
}

func TestHintsAreThoseOfTheSessionUntilItsToolsChange(t *testing.T) {
	one, other := &callbacks{server: new(mcpbridge.Server)}, new(callbacks)
	one.hints.set([]*mcp.Tool{{Name: "read", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, {Name: "write"}}, one.hints.changed())
	safe, known := one.hints.of("read")
	require.True(t, safe && known)
	safe, known = one.hints.of("write")
	require.True(t, !safe && known)
	_, known = other.hints.of("read")
	require.False(t, known, "another user may have other tools")
	before := one.hints.changed()
	one.heardOnWire("notifications/tools/list_changed", nil)
	_, known = one.hints.of("read")
	require.False(t, known)
	one.hints.set([]*mcp.Tool{{Name: "read"}}, before)
	_, known = one.hints.of("read")
	require.False(t, known, "the list may be from before the change")
}

// A stream of an older protocol that was cut without ids may have missed something.
func TestStandaloneStreamTellsWhatItMayHaveMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var heard []string
		s := newScript()
		s.answer(http.MethodGet, breaks("retry: 1\n\n"), breaks("id: 7\ndata: "+`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`+"\n\n"), stays(""))
		srv := mcpbridge.Server{Name: "test", URL: "http://test/mcp", HTTPClient: &http.Client{Transport: s}}
		server := &mcp.InitializeResult{ProtocolVersion: protocolLegacy, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}}
		c, err := New([]mcpbridge.Server{srv}, nil).Dial(t.Context(), dial.Request{
			Key: messages.Key{Server: "test"}, Down: func(e *mcpbridge.Error) { t.Errorf("down: %v", e) },
			Resume: &mcpbridge.Resume{SessionID: testSession, Server: server, Endpoint: fingerprintOf(srv.URL)},
			Heard: func(n messages.Notification, _ messages.Operation) {
				mu.Lock()
				defer mu.Unlock()
				heard = append(heard, fmt.Sprintf("%T", n)[len("*messages."):])
			},
		})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		mu.Lock()
		require.Equal(t, []string{"ToolsChanged", "ServerLog"}, heard, "once: the second time it went on where it was cut")
		mu.Unlock()
		_, times := s.seen(http.MethodGet)
		require.Len(t, times, 3)
		require.GreaterOrEqual(t, times[1].Sub(times[0]), (500 * time.Millisecond), "whatever the server asks for")
		require.NoError(t, c.Close(t.Context()))
	})
}
