package mcpbridge

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptrace"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

const testSession = "made-up-session-4711"

// answering makes the response to a request.
type answering func(req *http.Request) (*http.Response, error)

// script is an HTTP server without a socket. It answers well, and has no
// stream, but for what it is told.
type script struct {
	mu       sync.Mutex
	told     map[string]answering // by JSON-RPC method, or HTTP method
	requests []*http.Request
	downs    []*Error
}

func newScript() *script { return &script{told: map[string]answering{}} }

// answer says how requests of a kind are answered; nil is well.
func (s *script) answer(kind string, how answering) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[kind] = how
}

// RoundTrip answers a request.
func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	msg := parse(bodyOf(req))
	kind := cmp.Or(msg.Method, req.Method)
	s.mu.Lock()
	s.requests = append(s.requests, req)
	how := s.told[kind]
	s.mu.Unlock()
	switch {
	case how != nil:
		return how(req)
	case kind == http.MethodGet:
		return answer(req, http.StatusMethodNotAllowed, "", nil), nil
	case msg.isCall():
		return answer(req, http.StatusOK, typeJSON, []byte(`{"jsonrpc":"2.0","id":`+string(msg.ID)+`,"result":{"content":[]}}`)), nil
	}
	return answer(req, http.StatusAccepted, "", nil), nil
}

// attach dials by attaching: that takes no handshake but a ping.
func (s *script) attach(t *testing.T, change ...func(*Server)) Conn {
	t.Helper()
	srv := Server{Name: "test", URL: "http://test/mcp", HTTPClient: &http.Client{Transport: s}}
	for _, f := range change {
		f(&srv)
	}
	c, err := New([]Server{srv}).Dial(context.Background(), DialRequest{
		Key:    messages.Key{Server: "test"},
		Resume: &Resume{SessionID: testSession, Server: &mcp.InitializeResult{ProtocolVersion: protocolLegacy}},
		Down: func(e *Error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.downs = append(s.downs, e)
		},
	})
	require.NoError(t, err)
	require.True(t, c.Info().Attached)
	return c
}

func toolCall() *messages.CallTool {
	return &messages.CallTool{Params: &mcp.CallToolParams{Name: "tool"}}
}
