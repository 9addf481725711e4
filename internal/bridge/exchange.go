package bridge

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"

	"github.com/mcpactor/mcpactor/internal/bridge/redact"
	"github.com/mcpactor/mcpactor/internal/bridge/rpc"
)

// exchange records what the wire knows of one operation. It travels in the
// context of the call, so that whoever sees the wire can write into it. An
// operation may be several requests.
type exchange struct {
	context.Context                 // ends when the operation has to
	values          context.Context // of the caller, or nil

	conn  *conn  // which it is an operation of, or its dial
	token string // for its progress, or empty
	trace httptrace.ClientTrace
	done  <-chan struct{} // closed when the operation is over, or cut; nil for a dial

	mu          sync.Mutex
	sent        bool // some of a request may have reached the server
	onWire      bool // an HTTP request was handed to the transport, and may have left
	unprocessed bool // the server has said that it did not process it
	connection  connection
	network     net.Conn // that it got

	accepted bool             // the server took a request, by a 2xx or by an answer
	rounds   bool             // that was so for an earlier request of the operation
	begun    bool             // a request of the operation was answered over a pipe
	answered bool             // the last request's response arrived, whatever it says
	failure  error            // which it is, if it is an error
	refusal  *mcpbridge.Error // the last thing that came instead of an answer
	resumes  int              // attempts to resume a broken stream
	streams  int              // that are read for an answer
	release  func()           // when there are none any more; nil before the end

	credentials http.Header // that the last request was sent with, if it was a question

	end int64           // where in the input of a process the last request ends, without its newline
	id  jsonrpc.ID      // of the last request, but over streamable HTTP
	raw json.RawMessage // the same as JSON, over HTTP
}

type exchangeKey struct{}

// withExchange returns a context that carries a new exchange of a connection.
func withExchange(ctx context.Context, c *conn) (context.Context, *exchange) {
	ex := &exchange{Context: ctx, conn: c}
	if c.at.url == nil {
		return ex, ex
	}
	ex.trace.GetConn, ex.trace.GotConn = ex.getConn, ex.gotConn
	return httptrace.WithClientTrace(ex, &ex.trace), ex
}

// Value finds the exchange in its own context.
func (ex *exchange) Value(key any) any {
	if key == (exchangeKey{}) {
		return ex
	}
	if value := ex.Context.Value(key); value != nil || ex.values == nil {
		return value
	}
	return ex.values.Value(key)
}

// tailLimit is how long the stream of an answer may stay open after it.
const tailLimit = time.Second

// finish cancels what an operation has left. A stream that has brought the answer may end
// by itself first: else its connection would be lost. From a server that has once not
// ended one that is no longer expected: there would be ever more of them.
func (ex *exchange) finish(well bool, cancel context.CancelFunc) {
	ex.mu.Lock()
	lingers := &ex.conn.at.lingers
	wait := well && ex.streams > 0 && !lingers.Load()
	if wait {
		timer := time.AfterFunc(tailLimit, func() { lingers.Store(true); cancel() })
		ex.release = func() { timer.Stop(); cancel() }
	}
	ex.mu.Unlock()
	if !wait {
		cancel()
	}
}

// streamed notes that a stream is read, by 1, or was closed, by -1.
func (ex *exchange) streamed(by int) {
	ex.mu.Lock()
	ex.streams += by
	release := ex.release
	over := ex.streams == 0 && release != nil
	ex.mu.Unlock()
	if over {
		release()
	}
}

// exchangeOf returns the exchange of ctx, or one that nobody reads.
func exchangeOf(ctx context.Context) *exchange {
	if ex, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return ex
	}
	return new(exchange)
}

// connOf returns the connection of ctx, or one that does nothing. The SDK hands the
// values of the context that a session was connected with to all its handlers.
func connOf(ctx context.Context) *conn {
	if c := exchangeOf(ctx).conn; c != nil {
		return c
	}
	return new(conn)
}

// begin is middleware for the SDK's client: it notes that another request begins,
// of which the answer to the one before says nothing. The SDK may refuse to send
// it when the connection has just ended. And it asks for progress.
func begin(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ex := exchangeOf(ctx)
		ex.note(func(ex *exchange) { ex.answered, ex.rounds = false, ex.accepted || ex.begun })
		if level := connOf(ctx).logLevel(); level != "" && req.GetParams() != nil {
			meta := req.GetParams().GetMeta()
			if meta == nil {
				meta = map[string]any{}
			}
			meta[mcp.MetaKeyLogLevel] = level
			req.GetParams().SetMeta(meta)
		}
		if ex.token != "" {
			if params, ok := req.GetParams().(mcp.RequestParams); ok {
				params.SetProgressToken(ex.token)
			}
		}
		return next(ctx, method, req)
	}
}

// connection says what is known of the connection of an HTTP request.
type connection uint8

const (
	connectionUnknown connection = iota // the transport does not tell
	connectionWanted                    // there is none yet
	connectionGot
)

// getConn notes that the transport looks for a connection.
func (ex *exchange) getConn(string) {
	ex.note(func(ex *exchange) {
		if ex.connection == connectionUnknown {
			ex.connection = connectionWanted
		}
	})
}

// gotConn notes that a request has a connection: from here on some of it may reach
// the server.
func (ex *exchange) gotConn(info httptrace.GotConnInfo) {
	ex.note(func(ex *exchange) { ex.connection, ex.network = connectionGot, info.Conn })
}

// overHTTP2 reports whether the last request got a connection of HTTP/2, or of a kind
// that is not known.
func (ex *exchange) overHTTP2() bool {
	ex.mu.Lock()
	network := ex.network
	ex.mu.Unlock()
	conn, ok := network.(*tls.Conn)
	return !ok || conn.ConnectionState().NegotiatedProtocol == "h2"
}

// answer notes the response that arrived. Call it with the lock held.
func (ex *exchange) answer(resp *jsonrpc.Response) {
	ex.answered, ex.failure = true, resp.Error
}

func (ex *exchange) note(f func(*exchange)) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	f(ex)
}

// refuse notes what came instead of an answer. If an earlier request of the
// operation was taken, a refusal no longer proves that nothing ran.
func (ex *exchange) refuse(e *mcpbridge.Error) {
	ex.note(func(ex *exchange) {
		if ex.accepted && e.Class == mcpbridge.Expired {
			lost := *e
			lost.Class = mcpbridge.Lost
			e = &lost
		}
		ex.refusal = e
	})
}

// hadRounds reports whether an earlier request of the operation was taken: then it may
// have run, whatever became of the last one.
func (ex *exchange) hadRounds() bool {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.rounds
}

// mismatched reports whether the operation was refused, before any of it ran, for
// headers that do not match it.
func (ex *exchange) mismatched() bool {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.refusal != nil && ex.refusal.Code == mcp.CodeHeaderMismatch && !ex.accepted
}

// restart forgets the requests so far, of which none has run.
func (ex *exchange) restart() {
	ex.note(func(ex *exchange) {
		ex.sent, ex.onWire, ex.unprocessed = false, false, false
		ex.accepted, ex.begun, ex.answered, ex.refusal = false, false, false, nil
	})
}

// explain says what err means, for the call and for its session. The order of
// the cases is the order of certainty.
func (ex *exchange) explain(ctx context.Context, err error, secrets ...string) *mcpbridge.Error {
	ex.mu.Lock()
	defer ex.mu.Unlock()

	var already *mcpbridge.Error
	var wire *jsonrpc.Error
	isWire := errors.As(ex.failure, &wire) || errors.As(err, &wire)
	e := &mcpbridge.Error{Sent: ex.sent || ex.accepted, Detail: redact.Describe(err, secrets...), Err: err}
	switch {
	case errors.As(err, &already):
		return already
	case ex.refusal != nil:
		return ex.refusal
	case ex.answered && (isWire || !undelivered(err)) || ex.accepted && (isWire || undecodable(err)):
		// An answer that arrived is an answer, whatever sentinel it reads like.
		e.Class = mcpbridge.ServerError
		if !isWire {
			e.Class, e.Detail = mcpbridge.Protocol, "the answer could not be decoded"
		} else {
			e.Detail = redact.Clean(wire.Message, secrets...)
			e.Status, e.Code, e.Doubt = http.StatusOK, wire.Code, !saysAlive(wire.Code)
			if wire.Code == rpc.CodeInvalidParams || wire.Code == rpc.CodeMethodNotFound {
				e.Class = mcpbridge.Invalid
			}
		}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.Class = mcpbridge.Deadline
	case ctx.Err() != nil:
		e.Class = mcpbridge.Cancelled
	case !ex.sent && unmarshalable(err):
		e.Class = mcpbridge.Invalid
	case ex.unprocessed && !ex.accepted && !ex.begun:
		e.Class = mcpbridge.NotSent
	case !ex.sent && !ex.accepted && !ex.begun:
		e.Class, e.Session = mcpbridge.NotSent, mcpbridge.Broken
	default:
		e.Class, e.Session = mcpbridge.Lost, mcpbridge.Broken
	}
	return e
}

// undelivered reports whether err is about the end of a connection, or of a context:
// the answer may have come at that moment, and its call did not get it.
func undelivered(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, mcp.ErrConnectionClosed)
}

// undecodable reports whether err is about a result that is not what it should be.
func undecodable(err error) bool {
	var kind *json.UnmarshalTypeError
	return errors.As(err, &kind)
}

// unmarshalable reports whether err is about parameters that are no JSON.
func unmarshalable(err error) bool {
	var kind *json.UnsupportedTypeError
	var value *json.UnsupportedValueError
	var marshaler *json.MarshalerError
	return errors.As(err, &kind) || errors.As(err, &value) || errors.As(err, &marshaler)
}
