package mcpserver

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/tests/faults"
)

// slow is a handler whose calls take five seconds, and report progress in the middle.
type slow struct {
	*Client
	calls atomic.Int32
}

func (s *slow) Handle(r *Request) (any, error) {
	r.Pass()
	if r.Method == "initialize" {
		version := ObjectOf(r.Params).Text("protocolVersion")
		return json.RawMessage(`{"protocolVersion":"` + version + `","capabilities":{"tools":{}},"serverInfo":{"name":"slow","version":"1"}}`), nil
	}
	n := s.calls.Add(1)
	time.Sleep(3 * time.Second)
	s.Notify("notifications/progress", map[string]any{"progressToken": 1, "progress": 0.5}, r)
	time.Sleep(2 * time.Second)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("a", 1000) + strconv.Itoa(int(n))}}}, nil
}

func (*slow) Notified(*Message) {}

func (*slow) Left(bool) {}

// The stream of a call breaks: before the progress, within it, within the answer, or several times. The client of the SDK resumes
// it, gets the answer, and the call has run once.
func TestClientWhoseStreamBreaksGetsItsAnswer(t *testing.T) {
	for name, cuts := range map[string][]int{
		"after the first event": {45}, "within the progress": {98}, "after the progress": {158}, "within the answer": {638}, "each time": {45, 98, 638},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var handler *slow
				e := &HTTP{Accept: func(c *Client) Handler {
					handler = &slow{Client: c}
					return handler
				}}
				front := faults.Local(func() http.Handler { return e })
				defer front.Close()
				defer e.Close()
				resumed := 0
				front.Inject("", func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
					if r.Header.Get("Last-Event-ID") != "" {
						resumed++
					} else if r.Kind != "tools/call" {
						next.ServeHTTP(w, r.Request)
						return
					}
					if resumed < len(cuts) {
						faults.CutAnswer(cuts[resumed])(w, r, next)
						return
					}
					next.ServeHTTP(w, r.Request)
				})
				client := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil)
				session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
					Endpoint: "http://127.0.0.1/mcp", HTTPClient: &http.Client{Transport: front}, DisableStandaloneSSE: true,
				}, nil)
				require.NoError(t, err)
				defer session.Close()
				result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "slow"})
				require.NoError(t, err)
				require.Equal(t, strings.Repeat("a", 1000)+"1", result.Content[0].(*mcp.TextContent).Text)
				require.EqualValues(t, 1, handler.calls.Load())
				require.Equal(t, len(cuts), resumed)
			})
		})
	}
}

// What is kept of streams is bounded, and an answer that has come is kept for the last ones.
func TestWhatIsKeptOfStreamsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &HTTP{Accept: func(c *Client) Handler { return &slow{Client: c} }}
		defer e.Close()
		l, err := e.find("id", func(*Client) {})
		require.NoError(t, err)
		answer := func(id, text string) *stream {
			s, _ := l.newStream([]*Message{{ID: json.RawMessage(id), Method: "tools/call"}})
			for range 3 * maxMessages {
				l.send(&Message{Method: "notifications/progress"}, json.RawMessage(id))
			}
			s.take(0)
			require.LessOrEqual(t, len(s.kept), maxMessages)
			l.send(&Message{ID: json.RawMessage(id), Result: json.RawMessage(strconv.Quote(text))}, json.RawMessage(id))
			return s
		}
		first := answer("1", "small")
		for id := range 30 {
			answer(strconv.Itoa(id+2), strings.Repeat("x", 1<<20))
		}
		s, _, err := l.resumed(first.name + "-0")
		require.NoError(t, err)
		require.NotSame(t, first, s)
		messages, _, last := s.take(0)
		require.True(t, last)
		require.Len(t, messages, 1)
		require.Contains(t, string(messages[0]), `"id":1,"error":{"code":-32603,"message":"the response is lost`)
		require.Less(t, len(l.streams), 20)
		large := answer("40", strings.Repeat("x", 2*maxAnsweredBytes))
		s, _, err = l.resumed(large.name + "-0")
		require.NoError(t, err)
		messages, _, last = s.take(0)
		require.True(t, last)
		require.Greater(t, len(messages[len(messages)-1]), 2*maxAnsweredBytes)
		require.Len(t, l.answered, 1, "it takes the place of all others")
		time.Sleep(resumeTime + time.Second)
		answer("50", "small")
		require.Len(t, l.answered, 1, "the time of the others is over")
		for range 3 * maxMessages {
			l.send(&Message{Method: "notifications/message"}, nil)
		}
		require.LessOrEqual(t, len(l.standalone.kept), maxMessages)
	})
}

// A stream goes on with what nobody has read, and with what comes after an event.
func TestStandaloneStreamGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &HTTP{Accept: func(c *Client) Handler { return &slow{Client: c} }}
		defer e.Close()
		l, err := e.find("id", func(*Client) {})
		require.NoError(t, err)
		get := func(event string) string {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/mcp", nil)
			r.Header.Set(headerSession, l.id)
			r.Header.Set("Last-Event-ID", event)
			w := httptest.NewRecorder()
			e.ServeHTTP(w, r)
			return w.Body.String()
		}
		l.send(&Message{Method: "one"}, nil)
		l.send(&Message{Method: "two"}, nil)
		name := l.standalone.name
		require.Equal(t, "id: "+name+"-1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"one\"}\n\nid: "+name+"-2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"two\"}\n\n", get(""))
		require.Empty(t, get(""))
		require.Contains(t, get(name+"-1"), "id: "+name+"-2\ndata:")
		require.Contains(t, get("9-0"), "not kept any more")
		require.Empty(t, get(name+"-1000"))
		l.send(&Message{Method: "three"}, nil)
		require.Contains(t, get("another1.-1000"), "three", "of a process before this one")
	})
}

// The reader of a stateless request never finds its response without its end: it would send events, whose status is always 200.
func TestResponseToAStatelessRequestIsTheEndOfItsStream(t *testing.T) {
	l := &httpLink{requests: map[string]*stream{}}
	s, r := l.newStateless(&Message{ID: json.RawMessage("1"), Method: "ping"}, nil, t.Context())
	s.put(&Message{Method: "notifications/message"})
	_, _, last := s.take(0)
	require.False(t, last)
	s.put(&Message{ID: r.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound}})
	messages, _, last := s.take(1)
	require.Len(t, messages, 1)
	require.True(t, last)
	require.Equal(t, http.StatusNotFound, s.status)
}
