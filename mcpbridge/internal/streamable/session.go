package streamable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// session is the MCP session of a connection, which the server knows by its id. The parts of the connection share it.
type session struct {
	*transport.Session
	client  *outbound.Client
	out     *outbound.Sender
	answers wire.Answers
	habits  *habits

	fresh  atomic.Bool   // the server has answered nothing since initialize
	ending chan struct{} // has an element while EndSession runs

	mu       sync.Mutex
	id       string        // empty until it is known
	protocol string        // the version that the requests of the SDK name
	born     time.Time     // when this connection opened the session; zero if it was resumed
	ended    bool          // there is nothing to be ended on the server
	left     bool          // see leave
	opening  chan struct{} // closed when the request that opens the session has ended; nil before and after
	unknown  bool          // that request was given up without an answer: the server may have opened a session
	former   redact.Recent // the former ids of the session

	expiry *mcpbridge.Error // the refusal that first said that the server does not know the session, or nil; read-only

	awaited awaitedResponses
}

// habits are what is known about the behavior of a server. Its sessions share them.
type habits struct {
	lingers     atomic.Bool  // it leaves streams open after the response
	streams     atomic.Bool  // it has opened standalone streams
	lateStreams atomic.Bool  // its answer to the GET for such a stream comes late
	forgets     atomic.Int32 // how many expired sessions in a row were unknown to all of its instances
	openIDs     sessionIDs   // forget does not reset it
}

// forget resets the habits.
func (h *habits) forget() {
	h.lingers.Store(false)
	h.streams.Store(false)
	h.lateStreams.Store(false)
	h.forgets.Store(0)
}

// admit waits until the SDK may get a request or notification that came on the stream of an exchange, or with nil on the
// standalone stream. See [wire.Backpressure].
func (s *session) admit(ex *wire.Exchange, req *jsonrpc.Request) (ok bool, err error) {
	ctx := s.Cut
	if ex != nil && ex.Context != nil { // it ends with the session, too
		ctx = ex
	}
	return s.Backpressure.Admit(ctx, req)
}

// withBarrier returns an event, and after it the barrier of [wire.Backpressure] if one is due.
func (s *session) withBarrier(event []byte) []byte {
	barrier := s.Backpressure.Barrier()
	if barrier == nil {
		return event
	}
	if !bytes.HasSuffix(event, []byte("\n\n")) { // the stream has ended
		event = append(event, '\n')
	}
	data, _ := jsonrpc.EncodeMessage(barrier) // it is ours
	return fmt.Appendf(event, "data: %s\n\n", data)
}

// noteRequest notes the session id in a request of the SDK, and replaces it by the current id of the session.
func (s *session) noteRequest(req *http.Request) {
	id := req.Header.Get(outbound.HeaderSession)
	if id == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.protocol = req.Header.Get(outbound.HeaderProtocol)
	switch s.id {
	case id:
	case "":
		s.setID(id)
	default:
		req.Header.Set(outbound.HeaderSession, s.id)
	}
}

// maxFormer bounds how many former ids of a session are kept out of texts.
const maxFormer = 64

// noteResponse notes the session id in a 2xx, and removes it, because the SDK ends a session whose id changes. Some servers give a
// session another id with each answer, and other clients use the new id from then on. A session that got no id from its
// initialize gets none later.
func (s *session) noteResponse(req *http.Request, resp *http.Response) {
	id := resp.Header.Get(outbound.HeaderSession)
	if id == "" || !is2xx(resp) {
		return
	}
	resp.Header.Del(outbound.HeaderSession)
	if wire.ExchangeOf(req.Context()).As != "" {
		return // the request carried the id of another session
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if isOfSession(req) && s.id != id {
		s.former.Add(s.id, maxFormer)
		s.setID(id)
	}
}

// SessionID returns the current id of the session, or nothing.
func (s *session) SessionID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// setID sets the id of the session. The lock is held.
func (s *session) setID(id string) {
	if !s.left {
		s.habits.openIDs.move(s.id, id)
	}
	s.id = id
}

// leave notes that the session is no longer used, and reports whether no other open session has its id.
func (s *session) leave() (isLast bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.left {
		s.left = true
		s.habits.openIDs.move(s.id, "")
	}
	return !s.habits.openIDs.has(s.id)
}

// opened notes the session id in the answer to initialize.
func (s *session) opened(resp *http.Response) {
	if id := resp.Header.Get(outbound.HeaderSession); id != "" {
		s.mu.Lock()
		s.setID(id)
		s.born = time.Now()
		s.mu.Unlock()
		s.fresh.Store(true)
	}
}

// identify adds the headers of the session to a request that is not from the SDK.
func (s *session) identify(req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	req.Header.Set(outbound.HeaderSession, s.id)
	if s.protocol != "" {
		req.Header.Set(outbound.HeaderProtocol, s.protocol)
	}
}

// Secrets returns what no error text may contain: credentials, and the id of the session.
func (s *session) Secrets() []string {
	return append(s.former.AppendTo(s.out.Secrets()), s.SessionID())
}

// judge reads a refusal to its end, and returns what it means. id is the id of the SDK's request, or nil for another
// request.
func (s *session) judge(req *http.Request, resp *http.Response, id json.RawMessage) (e *mcpbridge.Error, body []byte) {
	body = outbound.ReadRefusal(resp)
	if number, err := strconv.ParseInt(string(id), 10, 64); err == nil {
		id = strconv.AppendInt(nil, s.answers.IDs.OnWire(number), 10)
	}
	refusal := wire.Refusal{
		Status: resp.StatusCode, Header: resp.Header, Body: body, ID: id,
		OfSession: isOfSession(req) || s.IsOpen.Load(), Session: req.Header.Get(outbound.HeaderSession),
	}
	return refusal.Judge(s.Secrets()...), body
}

// isOfSession reports whether a request carries a session id.
func isOfSession(req *http.Request) bool { return req.Header.Get(outbound.HeaderSession) != "" }

// is2xx reports whether the server has accepted a request.
func is2xx(resp *http.Response) bool { return resp.StatusCode >= 200 && resp.StatusCode <= 299 }
