package bridge

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/bridgetest"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/messages"
)

type answering = bridgetest.Answering

const testSession = bridgetest.SessionID

var (
	says    = bridgetest.Says
	then    = bridgetest.Then
	failure = bridgetest.Failure
)

// script is an HTTP server without a socket. It answers well, and has no
// stream, but for what it is told.
type script struct {
	mu       sync.Mutex
	told     map[string]answering // by JSON-RPC method, or HTTP method
	requests []*http.Request
	times    []time.Time
	downs    []*mcpbridge.Error
	call     string // the id of the last call of a tool
}

func newScript() *script { return &script{told: map[string]answering{}} }

// answer says how requests of a kind are answered, one after the other and
// the last way for ever. Nil is well.
func (s *script) answer(kind string, ways ...answering) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[kind] = ways[0]
	if len(ways) > 1 {
		s.told[kind] = func(req *http.Request) (*http.Response, error) {
			s.answer(kind, ways[1:]...)
			return ways[0](req)
		}
	}
}

// RoundTrip answers a request.
func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	req = readable(req)
	msg := rpc.Parse(rpc.BodyOf(req))
	kind := cmp.Or(msg.Method, req.Method)
	s.mu.Lock()
	s.requests, s.times = append(s.requests, req), append(s.times, time.Now())
	how := s.told[kind]
	if kind == "tools/call" {
		s.call = string(msg.ID)
	}
	req = req.WithContext(bridgetest.WithLastCall(req.Context(), s.call))
	s.mu.Unlock()
	switch {
	case how != nil:
		return how(req)
	case kind == http.MethodGet:
		return outbound.Respond(req, http.StatusMethodNotAllowed, "", nil), nil
	case msg.IsCall():
		return outbound.Respond(req, http.StatusOK, outbound.TypeJSON, []byte(`{"jsonrpc":"2.0","id":`+string(msg.ID)+`,"result":{"content":[]}}`)), nil
	}
	return outbound.Respond(req, http.StatusAccepted, "", nil), nil
}

// readable returns a request whose body can be read more than once.
func readable(req *http.Request) *http.Request {
	if req.GetBody != nil || req.Body == nil {
		return req
	}
	body, _ := io.ReadAll(req.Body)
	r := *req
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return &r
}

// seen returns the requests of an HTTP method, and when they came.
func (s *script) seen(method string) (requests []*http.Request, times []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, req := range s.requests {
		if req.Method == method {
			requests, times = append(requests, req), append(times, s.times[i])
		}
	}
	return requests, times
}

func stays(events string) answering { return then(nil, says(200, outbound.TypeSSE, events)) }

func breaks(events string) answering {
	return then(io.ErrUnexpectedEOF, says(200, outbound.TypeSSE, events))
}

func fails(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }

// ping is an event: a request of the server, which is answered by a POST.
func ping(id string) string {
	return `data: {"jsonrpc":"2.0","id":"` + id + `","method":"ping"}` + "\n\n"
}

// pongs returns the ids of the requests of the server that were answered.
func (s *script) pongs() (ids string) {
	posts, _ := s.seen(http.MethodPost)
	for _, req := range posts {
		if msg := rpc.Parse(rpc.BodyOf(req)); msg.Method == "" {
			ids += strings.Trim(string(msg.ID), `"`)
		}
	}
	return ids
}

// purse is the credentials of a test: a token, and how to get the next one.
type purse struct {
	mu        sync.Mutex
	token     string
	refreshes int
	next      func(ctx context.Context, req *http.Request, resp *http.Response) (string, error)
}

// refilled is a purse whose next token is as given.
func refilled(token, next string) *purse {
	return &purse{token: token, next: func(context.Context, *http.Request, *http.Response) (string, error) { return next, nil }}
}

func (p *purse) Credentials(context.Context, messages.Key) (mcpbridge.Credentials, error) {
	return p, nil
}

func (p *purse) Headers(context.Context) (http.Header, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return http.Header{"authorization": {"Bearer " + p.token}}, nil
}

func (p *purse) Refresh(ctx context.Context, req *http.Request, resp *http.Response) error {
	p.mu.Lock()
	p.refreshes++
	p.mu.Unlock()
	token, err := p.next(ctx, req, resp)
	if err == nil {
		p.set(token)
	}
	return err
}

func (p *purse) set(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.token = token
}

func (p *purse) refreshed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refreshes
}

// unless answers what a request with the token gets, and refuses any other.
func unless(token string, refusal, how answering) answering {
	return func(req *http.Request) (*http.Response, error) {
		if req.Header.Get("Authorization") == "Bearer "+token {
			return how(req)
		}
		return refusal(req)
	}
}

// tokens returns the tokens of the requests of a kind, one after the other.
func (s *script) tokens(kind string) (tokens []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, req := range s.requests {
		if method := rpc.Parse(rpc.BodyOf(req)).Method; method == kind || method == "" && req.Method == kind {
			tokens = append(tokens, strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "))
		}
	}
	return tokens
}

// ids returns the ids of the calls that were sent, of a method or of all.
func (s *script) ids(method string) (ids []string) {
	posts, _ := s.seen(http.MethodPost)
	for _, req := range posts {
		if msg := rpc.Parse(rpc.BodyOf(req)); msg.IsCall() && cmp.Or(method, msg.Method) == msg.Method {
			ids = append(ids, string(msg.ID))
		}
	}
	return ids
}
