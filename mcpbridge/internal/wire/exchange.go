package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/caller"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Exchange records what the wire shows of one operation. It is the context of the operation, so that
// all code between the SDK and the wire finds it. An operation may take several requests. The steps
// of each are, in this order:
//
//	Begin     the SDK is asked to send a request
//	Sent      the request was handed to a transport, and may reach the server
//	Accepted  the server has accepted it, with a 2xx
//	Answered  its response has arrived, whether a result or an error
//	Refused   something else came in place of the response
//
// All methods may be called from any goroutine.
type Exchange struct {
	context.Context                 // ends with the operation or its session
	values          context.Context // of the caller, or nil

	// Owner is the connection that the operation runs on.
	Owner any
	// Operation is the operation, or nil for requests of the bridge itself.
	Operation messages.Operation
	// ProgressToken is what the server reports progress with, or empty.
	ProgressToken string
	// As is the session id that its HTTP requests carry in place of the real one, or empty.
	As string
	// Over is closed when the operation is over or its connection is cut. It is nil for a
	// handshake.
	Over <-chan struct{}
	// Outlives is true for an exchange whose questions stay open when its connection has ended.
	Outlives bool
	// Read is the result of resources/read if the SDK gets an empty one in its place, which it does not cache. It belongs to the
	// goroutine of the operation.
	Read *mcp.ReadResourceResult
	// Cancel ends the operation. It is nil for a handshake, and for requests of the bridge itself.
	Cancel context.CancelFunc

	responseStreams

	trace httptrace.ClientTrace // of its HTTP requests; empty over other transports

	mu          sync.Mutex
	sent        bool // some of a request may have reached the server
	handedOver  bool // a request was handed to net/http, which may have sent it
	unprocessed bool // the server has said that it did not process the request
	connection  connection
	sendsOnce   bool     // another connection is wanted only if nothing was written to the one before
	network     net.Conn // the connection of the last request over HTTP

	accepted bool             // the server has accepted the last request
	begun    bool             // the last request was answered once
	earlier  bool             // the server has accepted or answered a request of the operation before the last one
	answered bool             // the response to the last request has arrived
	failure  error            // the error in that response, if it is one
	refusal  *mcpbridge.Error // the last thing that came in place of a response

	wanted  bool              // the exchange takes the result of the last request
	copies  bool              // the exchange keeps the result of the last request, which the SDK gets
	result  json.RawMessage   // the result that was taken, or nil
	params  json.RawMessage   // of the last request, if the SDK sends it without them
	kept    []json.RawMessage // results that the operation wants as they came
	odd     []string          // parts of its results that were left out or replaced
	lastOdd int               // how many of them are of the last result

	resumptions int // attempts to resume a stream that broke off

	credentials http.Header // of the last request, if that is a check

	id  jsonrpc.ID      // of the last request over a pipe
	end int64           // the offset in the pipe at which that request ends
	raw json.RawMessage // the id of the last request over HTTP, as JSON
}

type exchangeKey struct{}

// PrivateKey makes the key a [caller.Private].
func (exchangeKey) PrivateKey() {}

// traceKey is the key with which net/http looks for a trace in a context. Package httptrace does
// not export it, and would wrap the context of each exchange in another one.
var traceKey = caller.KeyAsked(func(ctx context.Context) { httptrace.ContextClientTrace(ctx) })

// NewExchange returns a new exchange, which is a context that carries itself. If traced is true,
// net/http reports to it the connections that its requests get.
func NewExchange(ctx context.Context, owner any, traced bool) *Exchange {
	ex := &Exchange{Context: ctx, Owner: owner}
	if traced {
		ex.trace.GetConn, ex.trace.GotConn = ex.wantsConnection, ex.gotConnection
	}
	return ex
}

// ExchangeOf returns the exchange of ctx, or a new one whose record nobody reads.
func ExchangeOf(ctx context.Context) *Exchange {
	if ex, ok := ctx.Value(exchangeKey{}).(*Exchange); ok {
		return ex
	}
	return new(Exchange)
}

// InExchange returns a context for a question of the server that belongs to an exchange. It ends
// with ctx, and not with the exchange.
func InExchange(ctx context.Context, ex *Exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, ex)
}

// IsExchangeKey reports whether a key is that of the exchange in a context.
func IsExchangeKey(key any) bool { return key == exchangeKey{} }

// WithValues makes the exchange look up values in the caller's context. The end of that context does not end
// the exchange.
func (ex *Exchange) WithValues(ctx context.Context) { ex.values = ctx }

// Value returns the exchange itself, its trace, or a value of the contexts that it is made of.
func (ex *Exchange) Value(key any) any {
	switch {
	case key == exchangeKey{}:
		return ex
	case key == traceKey && ex.trace.GetConn != nil:
		return &ex.trace
	case key == callerKey{} && ex.values != nil:
		return ex.values
	}
	if value := ex.Context.Value(key); value != nil || ex.values == nil || caller.Hides(key) {
		return value
	}
	return ex.values.Value(key)
}

// IsOver reports whether the operation is over, or its connection is cut.
func (ex *Exchange) IsOver() bool {
	select {
	case <-ex.Over:
		return true
	default:
		return false
	}
}

// Begin notes that another request begins, and whether its result is wanted: then
// [Exchange.Result] returns it, and the SDK does not get it. Begin forgets the response to the request
// before. Otherwise it would count for the new request, which the SDK may not even send.
func (ex *Exchange) Begin(wanted bool) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.earlier = ex.earlier || ex.accepted || ex.begun
	ex.accepted, ex.begun, ex.answered = false, false, false
	ex.wanted, ex.copies, ex.result, ex.params = wanted, false, nil, nil
}

// Copy notes that the result of the request is kept as it comes, although the SDK gets it.
func (ex *Exchange) Copy() {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.copies = true
}

// Carries notes the parameters of the request, as JSON, if the SDK sends it without them.
func (ex *Exchange) Carries(params json.RawMessage) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.params = params
}

// Params returns those parameters, or nil.
func (ex *Exchange) Params() json.RawMessage {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.params
}

// Restart forgets the requests so far. The caller knows that none of them has run.
func (ex *Exchange) Restart() {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.sent, ex.handedOver, ex.unprocessed, ex.kept, ex.odd, ex.lastOdd = false, false, false, nil, nil, 0
	ex.accepted, ex.earlier, ex.begun, ex.answered, ex.refusal = false, false, false, false, nil
}

// Message notes which message the SDK sends next over HTTP, by its id as JSON.
func (ex *Exchange) Message(id json.RawMessage) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.answered, ex.failure, ex.raw = false, nil, id
}

// MessageID returns the id of that message.
func (ex *Exchange) MessageID() json.RawMessage {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.raw
}

// Leaves tells the caller that a request is sent, and its id, if the caller wants to know that.
func (ex *Exchange) Leaves(id func() string) {
	if ex.values == nil {
		return
	}
	if sent, wants := ex.values.Value(caller.SentKey{}).(func()); wants {
		sent()
	}
	if note, wants := ex.values.Value(caller.RequestIDKey{}).(func(string)); wants {
		note(id())
	}
}

// Sent notes that a request is handed to net/http. From here on it counts as sent, unless
// [Exchange.NotSent] proves the contrary. once is true if net/http looks for another connection only if it has written nothing
// to the one before.
func (ex *Exchange) Sent(once bool) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.sent, ex.handedOver, ex.unprocessed, ex.connection, ex.sendsOnce = true, true, false, connectionUnknown, once
}

// NotSent notes that net/http failed to send the request, and whether the server said that it did
// not process it.
func (ex *Exchange) NotSent(unprocessed bool) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.unprocessed = unprocessed
	if unprocessed || ex.connection == connectionWanted {
		ex.sent, ex.handedOver = false, false
	}
}

// MayHaveReached reports whether some of the last request over HTTP may have reached the server.
func (ex *Exchange) MayHaveReached() bool {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.handedOver && ex.connection != connectionWanted
}

// Repeats notes that a request is sent again, because it was refused before it was carried out.
func (ex *Exchange) Repeats() {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.sent, ex.handedOver = false, false
}

// Accepted notes that the server has accepted the request. Over HTTP+SSE its response may have arrived before.
func (ex *Exchange) Accepted() {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	if ex.accepted = true; !ex.answered {
		ex.refusal = nil
	}
}

// WasAccepted reports whether the server has accepted a request of the operation.
func (ex *Exchange) WasAccepted() bool {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.accepted || ex.earlier
}

// ExchangeFor makes the exchange a [Waiting] that waits for the response to its own last request. A nil
// exchange waits for none.
func (ex *Exchange) ExchangeFor(id jsonrpc.ID) *Exchange {
	if ex == nil {
		return nil
	}
	ex.mu.Lock()
	defer ex.mu.Unlock()
	var digits [20]byte
	if number, ok := id.Raw().(int64); ok && bytes.Equal(strconv.AppendInt(digits[:0], number, 10), ex.raw) {
		return ex
	}
	return nil
}

// Answered notes that the response has arrived. It takes the result if that is wanted, and
// reports whether it has. Only the first response to a request counts, as for the SDK.
func (ex *Exchange) Answered(resp *jsonrpc.Response) (taken bool) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	if ex.answered {
		return false
	}
	ex.begun, ex.answered, ex.failure = true, true, resp.Error
	if ex.wanted && resp.Error == nil {
		ex.result = resp.Result
	}
	if ex.copies && resp.Error == nil {
		ex.kept = append(ex.kept, bytes.Clone(resp.Result))
	}
	return ex.result != nil
}

// OwnResult copies the result that was taken, if there is one. Call it before the data of the response changes.
func (ex *Exchange) OwnResult() {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.result = bytes.Clone(ex.result)
}

// Result returns the result that was taken from the response to the last request, or nil.
func (ex *Exchange) Result() json.RawMessage {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.result
}

// Keep keeps a copy of the result of the last request, as it came.
func (ex *Exchange) Keep(result json.RawMessage) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.kept = append(ex.kept, bytes.Clone(result))
}

// Kept returns the results that were kept.
func (ex *Exchange) Kept() []json.RawMessage {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.kept
}

// NoteOdd notes parts of the last result that were left out or replaced.
func (ex *Exchange) NoteOdd(parts []string) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.odd, ex.lastOdd = append(ex.odd, parts...), len(parts)
}

// DropLast drops what was kept and noted of the last result.
func (ex *Exchange) DropLast() {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.kept, ex.odd = ex.kept[:max(0, len(ex.kept)-1)], ex.odd[:len(ex.odd)-ex.lastOdd]
	ex.lastOdd = 0
}

// Odd returns the parts that were noted.
func (ex *Exchange) Odd() []string {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.odd
}

// Refused notes what came in place of a response.
func (ex *Exchange) Refused(e *mcpbridge.Error) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.refusal = e
}

// Unread notes that the response has arrived on a stream, and why it was not read.
func (ex *Exchange) Unread(e *mcpbridge.Error) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.begun, ex.answered, ex.refusal = true, true, e
}

// BrokeOff notes that the stream with the response ended before the response arrived, and
// that it cannot be resumed.
func (ex *Exchange) BrokeOff(e *mcpbridge.Error) {
	lost := *e
	lost.Class, lost.Sent, lost.Doubt = mcpbridge.Lost, true, false
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.refusal = &lost
}

// IsAnswered reports whether the response to the last request has arrived.
func (ex *Exchange) IsAnswered() bool {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.answered
}

// Resumes notes an attempt to resume the stream with the response. It returns how many attempts there were,
// and the refusal so far, or nil.
func (ex *Exchange) Resumes() (attempts int, refusal *mcpbridge.Error) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.resumptions++
	return ex.resumptions, ex.refusal
}

// HadEarlierRequests reports whether the server has accepted a request of the operation before the
// last one. Then the operation may have run, whatever became of the last request.
func (ex *Exchange) HadEarlierRequests() bool {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.earlier
}

// HasMismatchedHeaders reports whether the operation was refused, before any of it ran,
// because headers do not match its arguments.
func (ex *Exchange) HasMismatchedHeaders() bool {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.refusal != nil && ex.refusal.Code == mcp.CodeHeaderMismatch && !ex.accepted && !ex.earlier
}

// Outcome reports whether the last request was refused, and whether it was answered with an error.
func (ex *Exchange) Outcome() (refused, failed bool) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.refusal != nil, ex.answered && ex.failure != nil
}

// SentWith notes the credentials of a check.
func (ex *Exchange) SentWith(credentials http.Header) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.credentials = credentials
}

// Credentials returns the credentials of the last request, if that was a check.
func (ex *Exchange) Credentials() http.Header {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.credentials
}

// SentOverPipe notes that a request is written to a pipe.
func (ex *Exchange) SentOverPipe(id jsonrpc.ID) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.sent, ex.answered, ex.id = true, false, id
}

// WrittenOverPipe notes the offset at which the request ends, when all of it is written.
func (ex *Exchange) WrittenOverPipe(end int64) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.end = end
}

// NotWritten notes that the writing of the request failed. whole says whether all of it may have been
// written nevertheless. Over HTTP+SSE, it returns the refusal of the POST that carried the request, or nil.
func (ex *Exchange) NotWritten(whole bool) (refusal *mcpbridge.Error) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.sent = whole || ex.refusal != nil || ex.handedOver // the latter two only over HTTP+SSE
	return ex.refusal
}

// LastOverPipe returns the id of the last request over a pipe, and the offset at which it ends.
// begun reports whether a request of the operation was answered.
func (ex *Exchange) LastOverPipe() (id jsonrpc.ID, end int64, begun bool) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.id, ex.end, ex.begun || ex.earlier
}

// connection is what is known of the connection of an HTTP request.
type connection uint8

const (
	connectionUnknown connection = iota // the transport does not report it
	connectionWanted                    // there is none yet
	connectionGot
)

// wantsConnection notes that the transport looks for a connection.
func (ex *Exchange) wantsConnection(string) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	if ex.connection == connectionUnknown || ex.sendsOnce {
		ex.connection = connectionWanted
	}
}

// noticed is how long after the end of an idle connection net/http may not have noticed it.
const noticed = time.Millisecond

// gotConnection notes that a request has a connection. From here on some of it may reach the server. A connection that the
// server has ended while it was idle is closed: then net/http writes nothing to it, and looks for another one.
func (ex *Exchange) gotConnection(info httptrace.GotConnInfo) {
	if info.WasIdle && info.IdleTime >= noticed && hasEnded(info.Conn) {
		info.Conn.Close() //nolint:errcheck // it has ended
	}
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.connection, ex.network = connectionGot, info.Conn
}

// OverHTTP2 reports whether the last request got a connection of HTTP/2, or of a kind
// that is not known.
func (ex *Exchange) OverHTTP2() bool {
	ex.mu.Lock()
	network := ex.network
	ex.mu.Unlock()
	conn, ok := network.(*tls.Conn)
	return !ok || conn.ConnectionState().NegotiatedProtocol == "h2"
}
