package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"

	"github.com/mcpactor/mcpactor/internal/bridge/redact"
	"github.com/mcpactor/mcpactor/internal/bridge/rpc"
)

// maxResumes bounds how often the broken answer of one call is resumed. It
// is below the SDK's own bound, which would end the whole session.
const maxResumes = 3

// exchanger is the http.RoundTripper of one session. It writes into the exchange
// of each call what happened to it, and hands the SDK answers in place of
// refusals, so that what fails one call fails no other.
type exchanger struct {
	conn *conn // whose it is
	srv  *mcpbridge.Server
	out  *sender  // sends the requests
	ids  *rpc.IDs // of its requests; nil for HTTP+SSE, where the tap has them
	sse  bool     // HTTP+SSE: the session id is in the URL, answers come elsewhere
	seen *discovery

	// resume is the session to attach to, or nil: its handshake is answered
	// from here.
	resume *mcpbridge.Resume

	mu          sync.Mutex
	initialized chan struct{} // closed at the end of the request that opens a session; nil before and after
	sessionID   string        // of the session, once it is known
	protocol    string
	born        time.Time // when that was
	expired     bool
	deleted     bool // or not there to be deleted

	fresh atomic.Bool // it has answered nothing since initialize

	// cancelling has room for the notifications of cancelled calls that are sent at once:
	// those to a server that hangs would hold a connection each.
	cancelling chan struct{}
}

// maxCancelling is the capacity of cancelling.
const maxCancelling = 16

// RoundTrip does one exchange. See [exchanger].
func (x *exchanger) RoundTrip(req *http.Request) (*http.Response, error) {
	if done := exchangeOf(req.Context()).done; done != nil && done == req.Context().Done() {
		return x.roundTrip(req) // it is cut with its operation
	}
	if x.opensStream(req) {
		return x.roundTrip(req) // which sees to it itself
	}
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(x.conn.cut, cancel)
	resp, err := x.roundTrip(req.WithContext(ctx))
	if err != nil {
		stop()
		cancel()
		return nil, err
	}
	resp.Body = &cancelBody{resp.Body, func() { stop(); cancel() }}
	return resp, nil
}

func (x *exchanger) roundTrip(req *http.Request) (*http.Response, error) {
	if id := req.Header.Get(headerSession); id != "" {
		x.mu.Lock()
		x.sessionID, x.protocol = id, req.Header.Get(headerProtocol)
		x.mu.Unlock()
	}
	switch {
	case req.Method == http.MethodDelete:
		return answer(req, http.StatusOK, "", nil), nil // Close has seen to it
	case x.opensStream(req):
		return x.openStream(req)
	case req.Method == http.MethodGet && x.sse:
		return x.connectSSE(req)
	case req.Method == http.MethodGet:
		return x.resumeAnswer(req)
	}
	return x.post(req)
}

// opensStream reports whether a request is for the standalone stream.
func (x *exchanger) opensStream(req *http.Request) bool {
	return req.Method == http.MethodGet && !x.sse && req.Header.Get(headerEvent) == ""
}

// post sends one JSON-RPC message.
func (x *exchanger) post(req *http.Request) (*http.Response, error) {
	ex := exchangeOf(req.Context())
	msg, req := x.open(req)
	handshake := !x.conn.isOpen()
	switch {
	case handshake:
		x.seen.asked(msg.Method)
		// What counts is what became of the last request.
		ex.note(func(ex *exchange) { ex.sent, ex.accepted, ex.refusal = false, false, nil })
		if resp := x.attach(req, msg); resp != nil {
			return resp, nil
		}
	case !msg.IsCall():
		var ctx context.Context
		// The call's exchange tells nothing of the notification that it is cancelled,
		// nor the connection of that anything of the call.
		ctx, ex = withExchange(bare{req.Context()}, x.conn)
		req = req.WithContext(ctx)
		if msg.Method == rpc.MethodCancelled {
			select {
			case x.cancelling <- struct{}{}:
				defer func() { <-x.cancelling }()
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	ex.note(func(ex *exchange) { ex.answered, ex.failure, ex.raw = false, nil, msg.ID })
	send := x.send
	switch msg.Method {
	case rpc.MethodInitialize:
		send = x.initialize
	case rpc.MethodListen:
		return x.listen(req, msg)
	}
	resp, err := send(req)
	if err != nil {
		var bug *mcpbridge.Error
		if errors.As(err, &bug) {
			return x.reject(req, http.StatusInternalServerError, nil, ex, msg, bug), nil
		}
		return nil, err
	}
	if handshake {
		x.seen.answered()
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return x.refused(req, resp, ex, msg)
	}
	return x.taken(req, resp, ex, msg), nil
}

// open returns the message that a request of the SDK carries, and the request with the
// ids of the connection.
func (x *exchanger) open(req *http.Request) (rpc.Envelope, *http.Request) {
	if x.ids == nil {
		return rpc.Parse(rpc.BodyOf(req)), req
	}
	return x.ids.Renumber(req)
}

// send sends a request. A panic of the transport, which may be the caller's own, is
// an [*Error]: the SDK would be left with its locks taken.
func (x *exchanger) send(req *http.Request) (resp *http.Response, err error) {
	defer recovered(&err)
	return x.out.RoundTrip(req)
}

// taken handles a 2xx: the server has the message. A JSON answer is read here
// and now, because the SDK ends the session over one that it cannot read.
func (x *exchanger) taken(req *http.Request, resp *http.Response, ex *exchange, call rpc.Envelope) *http.Response {
	ex.note(func(ex *exchange) { ex.accepted, ex.refusal = true, nil })
	if req.Header.Get(headerSession) != "" {
		resp.Header.Del(headerSession) // the SDK ends a session whose id changes
	}
	kind := mediaType(resp)
	switch {
	case x.sse || !call.IsCall():
		return resp
	case kind == typeSSE:
		resp.Body = newEvents(resp.Body, ex, x)
		return resp
	}
	defer resp.Body.Close()
	body, err := readBounded(resp.Body, maxResult(x.srv))
	e := &mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Status: resp.StatusCode, Doubt: hadSession(req, x.sse)}
	switch {
	case errors.Is(err, errTooLarge):
		e.Detail, e.Doubt = tooLarge(x.srv), false
	case err != nil:
		e = &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Sent: true, Detail: redact.Describe(err, x.secrets()...)}
	case kind != typeJSON:
		e.Detail = fmt.Sprintf("the answer has content type %q", redact.Clean(kind))
	default:
		if body, e.Detail = x.answerOf(body, ex, call); body != nil {
			resp.Body, resp.ContentLength = bodyWith(body), int64(len(body))
			return resp
		}
	}
	ex.refuse(e)
	return answer(req, http.StatusOK, typeJSON, rpc.Failure(call.ID, 0, e.Detail), resp.Header)
}

// answerOf returns the answer to a call that a JSON body is, with the id of the SDK, and
// notes it; nil and the reason if it is none that the SDK can read.
func (x *exchanger) answerOf(body []byte, ex *exchange, call rpc.Envelope) (own []byte, wrong string) {
	msg, from := x.ids.Restore(body)
	if from == rpc.Unnamed { // it is this exchange's answer all the same
		body = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`, call.ID, msg.Error)
	}
	switch {
	case from == rpc.NoAnswer, from == rpc.NoMessage:
		return nil, "the answer is no JSON-RPC response"
	case from == rpc.StrayAnswer, from == rpc.OwnAnswer && !bytes.Equal(bytes.TrimSpace(msg.ID), call.ID):
		return nil, "the answer has the id of another request"
	case rpc.IsPlain(body, msg):
		ex.note(func(ex *exchange) { ex.answered = true })
		return body, ""
	}
	response := rpc.ResponseOf(body)
	if response == nil {
		return nil, "the answer is no JSON-RPC response"
	}
	ex.note(func(ex *exchange) { ex.answer(response) })
	return body, ""
}

// refused handles everything but a 2xx.
func (x *exchanger) refused(req *http.Request, resp *http.Response, ex *exchange, msg rpc.Envelope) (*http.Response, error) {
	e, body := x.judge(req, resp, msg.ID)
	if e.Session == mcpbridge.Gone && x.fresh.Load() {
		switch known, err := x.untilKnown(req); {
		case err != nil:
			return nil, err
		case known == nil:
		case known.StatusCode >= 200 && known.StatusCode <= 299:
			return x.taken(req, known, ex, msg), nil
		default:
			resp = known
			e, body = x.judge(req, resp, msg.ID)
		}
	}
	if e.Session == mcpbridge.Gone && mayRefresh(req.Context()) { // else who asks tells of it
		x.expire(e)
	}
	if isMoved(resp.StatusCode) { // the call would run elsewhere, if at all
		ex.note(func(ex *exchange) { e.Sent = ex.accepted })
	}
	return x.reject(req, resp.StatusCode, body, ex, msg, e), nil
}

const (
	// freshFor is how long a server may take to know a session that it has just opened,
	// and freshRetry how soon it is asked again.
	freshFor   = 2 * time.Second
	freshRetry = 50 * time.Millisecond
)

// whileFresh yields, at growing intervals, for as long as a server may not know a session
// that it has just opened.
func whileFresh(ctx context.Context) func(yield func() bool) {
	return func(yield func() bool) {
		limit := time.Now().Add(freshFor)
		for wait := freshRetry; time.Now().Add(wait).Before(limit) && sleep(ctx, wait); wait = min(2*wait, freshFor/5) {
			if !yield() {
				return
			}
		}
	}
}

// untilKnown sends a request again that was refused since the server does not know a
// session which it has just opened. It returns the first other answer, or nil.
func (x *exchanger) untilKnown(req *http.Request) (*http.Response, error) {
	for range whileFresh(req.Context()) {
		again := *req
		if req.GetBody != nil {
			again.Body, _ = req.GetBody() // of bytes, which does not fail
		}
		resp, err := x.send(&again)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusGone {
			return resp, nil
		}
		resp.Body.Close()
	}
	return nil, nil
}

// reject fails one message, and answers the SDK so that it fails no other.
func (x *exchanger) reject(req *http.Request, status int, body []byte, ex *exchange, msg rpc.Envelope, e *mcpbridge.Error) *http.Response {
	ex.refuse(e)
	if msg.Method == rpc.MethodDiscover && (e.Class == mcpbridge.ServerError || e.Class == mcpbridge.RateLimited) {
		x.seen.refused() // the SDK takes a server that is unwell for one that is old
	}
	switch {
	case x.sse:
		return answer(req, status, "", body)
	case !msg.IsCall():
		// A refused notification must not end the session of those who wait.
		return answer(req, http.StatusAccepted, "", nil)
	}
	told := rpc.Error{Message: e.Detail}
	if said := rpc.Parse(body).Error; said != nil && msg.Method == rpc.MethodDiscover && said.Code == mcp.CodeUnsupportedProtocolVersion {
		told.Code, told.Data = said.Code, said.Data // the SDK finds in it what to ask for instead
	}
	return answer(req, status, typeJSON, rpc.Refusal(msg.ID, told))
}

// judge reads a refusal to its end and says what it means.
func (x *exchanger) judge(req *http.Request, resp *http.Response, id json.RawMessage) (e *mcpbridge.Error, body []byte) {
	body, err := readBounded(resp.Body, maxRefusal)
	resp.Body.Close()
	if err != nil {
		body = nil // it may end in the middle of a secret
	}
	if number, err := strconv.ParseInt(string(id), 10, 64); err == nil && x.ids != nil {
		id = strconv.AppendInt(nil, x.ids.OnWire(number), 10)
	}
	return judge(refusal{resp.StatusCode, resp.Header, body, hadSession(req, x.sse), id}, x.secrets()...), body
}

// hadSession reports whether a request is one of a session.
func hadSession(req *http.Request, sse bool) bool {
	// HTTP+SSE has the session in the URL of its POSTs.
	return req.Header.Get(headerSession) != "" || sse && req.Method == http.MethodPost
}

// secrets returns what no error text may have: credentials, and the session's id.
func (x *exchanger) secrets() []string {
	all := x.out.secrets()
	x.mu.Lock()
	defer x.mu.Unlock()
	return append(all, x.sessionID)
}

// resumeAnswer resumes the stream of a call's answer that broke off. The call
// was accepted, so whatever refuses this proves nothing about the call: it is
// lost. The SDK would end the session; the call gets an event instead.
func (x *exchanger) resumeAnswer(req *http.Request) (*http.Response, error) {
	ex := exchangeOf(req.Context())
	attempts := 0
	var id json.RawMessage
	var known *mcpbridge.Error
	ex.note(func(ex *exchange) { ex.resumes++; attempts, id, known = ex.resumes, ex.raw, ex.refusal })
	instead := func(e *mcpbridge.Error) *http.Response {
		return answer(req, http.StatusOK, typeSSE, []byte("data: "+string(rpc.Failure(id, 0, e.Detail))+"\n\n"))
	}
	if known != nil { // it would come to the same again
		return instead(known), nil
	}
	lost := func(e *mcpbridge.Error) *http.Response {
		e.Class, e.Sent = mcpbridge.Lost, true
		ex.note(func(ex *exchange) { ex.refusal = e })
		return instead(e)
	}
	resp, err := x.send(req)
	switch {
	case err == nil && resp.StatusCode == http.StatusOK && attempts <= maxResumes:
		resp.Body = newEvents(resp.Body, ex, x)
		return resp, nil
	case err == nil && resp.StatusCode == http.StatusOK:
		resp.Body.Close()
		err = errors.New("it broke off again and again")
	case err == nil:
		e, _ := x.judge(req, resp, nil)
		if e.Session == mcpbridge.Gone {
			x.expire(e)
			e = &mcpbridge.Error{Session: mcpbridge.Gone, Detail: "its answer broke off, and the session expired: " + e.Detail}
			return lost(e), nil
		}
		err = e
	case req.Context().Err() != nil:
		return nil, err
	}
	if attempts >= maxResumes {
		return lost(&mcpbridge.Error{Session: mcpbridge.Broken, Detail: "its answer broke off and could not be resumed: " + redact.Describe(err, x.secrets()...)}), nil
	}
	return nil, err
}

// connectSSE opens the one stream of an HTTP+SSE session.
func (x *exchanger) connectSSE(req *http.Request) (*http.Response, error) {
	resp, err := x.send(req)
	var e *mcpbridge.Error
	switch {
	case errors.As(err, &e):
	case err == nil && resp.StatusCode != http.StatusOK:
		e, _ = x.judge(req, resp, nil)
	default:
		return resp, err
	}
	exchangeOf(req.Context()).refuse(e)
	return nil, e
}
