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
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
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
	left     bool          // it is used no more
	opening  chan struct{} // closed at the end of the request that opens the session; nil before and after
	former   redact.Recent // ids that the session had before

	elsewhere elsewhere
}

// habits are what is known of how a server behaves, for all of its sessions.
type habits struct {
	lingers     atomic.Bool  // it leaves streams open after their answer
	streams     atomic.Bool  // it gives a standalone stream to whoever asks for one, as far as is known
	lateStreams atomic.Bool  // but the answer takes its time
	forgets     atomic.Int32 // how many sessions in a row that had expired no instance of it knew
	users       users        // which is not forgotten
}

// forget resets the habits.
func (h *habits) forget() {
	h.lingers.Store(false)
	h.streams.Store(false)
	h.lateStreams.Store(false)
	h.forgets.Store(0)
}

// admit waits until the SDK may get a request or notification of the server that came on the stream
// of an exchange; nil is the standalone stream. See [wire.Backpressure].
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

// note notes which session a request of the SDK belongs to, and gives the request the id that the
// session has by now.
func (s *session) note(req *http.Request) {
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

// maxFormer is how many ids that the session had before are kept out of texts.
const maxFormer = 64

// taken notes the id in an answer to a message of the SDK, and removes it: the SDK takes the first
// that it sees, and ends a session whose id changes. A session has an id from its initialize on. Some servers
// give it another one with each answer, and other clients use that from then on.
func (s *session) taken(m outbound.Message, resp *http.Response) {
	id := resp.Header.Get(outbound.HeaderSession)
	if id == "" || m.Method == rpc.MethodInitialize {
		return
	}
	resp.Header.Del(outbound.HeaderSession)
	if m.Exchange.As != "" {
		return // it was not sent as this session
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if isOfSession(m.Request) && s.id != id {
		s.former.Add(s.id, maxFormer)
		s.setID(id)
	}
}

// SessionID returns the id that the session has by now, or nothing.
func (s *session) SessionID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// setID sets the id of the session. The lock is held.
func (s *session) setID(id string) {
	if !s.left {
		s.habits.users.move(s.id, id)
	}
	s.id = id
}

// leave notes that the session is used no more, and reports whether no other has its id.
func (s *session) leave() (isLast bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.left {
		s.left = true
		s.habits.users.move(s.id, "")
	}
	return !s.habits.users.has(s.id)
}

// opened notes the session that the response to initialize names.
func (s *session) opened(resp *http.Response) {
	if id := resp.Header.Get(outbound.HeaderSession); id != "" {
		s.mu.Lock()
		s.setID(id)
		s.born = time.Now()
		s.mu.Unlock()
		s.fresh.Store(true)
	}
}

// identify adds the headers of the session to a request of ours.
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

// judge reads a refusal to its end and says what it means. id is that of the SDK's request; nil for
// other requests.
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

// is2xx reports whether the server has taken a request.
func is2xx(resp *http.Response) bool { return resp.StatusCode >= 200 && resp.StatusCode <= 299 }
