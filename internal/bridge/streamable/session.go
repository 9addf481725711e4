package streamable

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpactor/mcpactor/internal/bridge/outbound"
	"github.com/mcpactor/mcpactor/internal/bridge/transport"
	"github.com/mcpactor/mcpactor/internal/bridge/wire"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// session is the MCP session that a connection carries, as the server knows it by its id. The parts
// of a connection share it.
type session struct {
	*transport.Session
	client  *outbound.Client
	out     *outbound.Sender
	answers wire.Answers
	habits  *habits

	fresh atomic.Bool // the server has answered nothing since initialize

	mu       sync.Mutex
	id       string        // empty until it is known
	protocol string        // what the SDK's requests carry
	born     time.Time     // when the session was opened here
	expired  bool          // the server does not know it
	ended    bool          // there is nothing to be ended on the server
	opening  chan struct{} // closed at the end of the request that opens the session; nil before and after
}

// habits are what is known of how a server behaves, for all of its sessions.
type habits struct {
	lingers     atomic.Bool  // it leaves streams open after their answer
	streams     atomic.Bool  // it gives a standalone stream to whoever asks for one, as far as is known
	lateStreams atomic.Bool  // but the answer takes its time
	forgets     atomic.Int32 // how many sessions in a row that had expired no instance of it knew
}

// forget resets the habits.
func (h *habits) forget() {
	h.lingers.Store(false)
	h.streams.Store(false)
	h.lateStreams.Store(false)
	h.forgets.Store(0)
}

// note notes which session a request of the SDK belongs to.
func (s *session) note(req *http.Request) {
	if id := req.Header.Get(outbound.HeaderSession); id != "" {
		s.mu.Lock()
		s.id, s.protocol = id, req.Header.Get(outbound.HeaderProtocol)
		s.mu.Unlock()
	}
}

// opened notes the session that the response to initialize names.
func (s *session) opened(resp *http.Response) {
	if id := resp.Header.Get(outbound.HeaderSession); id != "" {
		s.mu.Lock()
		s.id, s.born = id, time.Now()
		s.mu.Unlock()
		s.fresh.Store(true)
	}
}

// mark adds to a request of ours which session it belongs to.
func (s *session) mark(req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	req.Header.Set(outbound.HeaderSession, s.id)
	if s.protocol != "" {
		req.Header.Set(outbound.HeaderProtocol, s.protocol)
	}
}

// Secrets returns what no error text may contain: credentials, and the id of the session.
func (s *session) Secrets() []string {
	all := s.out.Secrets()
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(all, s.id)
}

// judge reads a refusal to its end and says what it means. id is that of the SDK's request; nil for
// other requests.
func (s *session) judge(req *http.Request, resp *http.Response, id json.RawMessage) (e *mcpbridge.Error, body []byte) {
	body = outbound.ReadRefusal(resp)
	if number, err := strconv.ParseInt(string(id), 10, 64); err == nil {
		id = strconv.AppendInt(nil, s.answers.IDs.OnWire(number), 10)
	}
	refusal := wire.Refusal{Status: resp.StatusCode, Header: resp.Header, Body: body, OfSession: isOfSession(req), ID: id}
	return refusal.Judge(s.Secrets()...), body
}

// isOfSession reports whether a request carries a session id.
func isOfSession(req *http.Request) bool { return req.Header.Get(outbound.HeaderSession) != "" }

// is2xx reports whether the server has taken a request.
func is2xx(resp *http.Response) bool { return resp.StatusCode >= 200 && resp.StatusCode <= 299 }
