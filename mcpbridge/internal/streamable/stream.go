package streamable

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

const (
	streamRetryMin = 500 * time.Millisecond
	streamRetryMax = 30 * time.Second
	// streamSteady is how long a stream lasts that does not end at once, and streamShort
	// how many streams in a row that do make the session doubtful.
	streamSteady = 5 * time.Second
	streamShort  = 3
	// streamHeaders bounds the wait for a server to answer a request that opens
	// the stream again.
	streamHeaders = 30 * time.Second
)

// stream is the standalone stream of a session, over which the server sends
// what was not asked for. The SDK would end the session when the stream is cut a few
// times, or refused once (go-sdk#1175); but the server decides when the session ends. So the SDK
// gets one stream that does not end. Behind it the real stream is opened
// again for as long as it takes, by the goroutine of the SDK that reads. Most streams
// are quiet most of the time: then they have no buffer of ours.
type stream struct {
	s      *session
	first  <-chan struct{} // closed after the first attempt; nil if that was made
	ctx    context.Context // of the SDK's request
	req    *http.Request   // the last one
	own    *wire.Exchange  // of the request, if it has a response
	missed func()          // called when the server opens another stream, and not where the last one was cut

	body   io.ReadCloser // the real stream, nil while there is none
	again  bool          // it is opened again when it ends, or if there is none
	worked bool          // the server has opened a stream before
	lastID string        // the id of the last whole event
	delay  time.Duration // before it is opened again
	retry  time.Duration // what the server asked for in an event, or 0
	busy   time.Duration // what its last refusal asked for, or 0
	opened time.Time     // the last time
	short  int           // how many streams in a row have ended soon after they were opened

	untaken bool // the server asks on it and does not take the answers: it is closed

	rpc.EventBuffer
}

func newStream(s *session, req *http.Request, own *wire.Exchange, missed func()) *stream {
	return &stream{s: s, ctx: req.Context(), req: req, own: own, missed: missed, delay: streamRetryMin}
}

// open opens the stream once. If that fails, again says whether to try again.
// It gives up when giveUp ends before the server has answered.
func (st *stream) open(giveUp context.Context) *http.Response {
	st.again = true
	ctx, cancel := st.untilCut()
	defer context.AfterFunc(giveUp, cancel)()
	st.req = outbound.Again(st.req.WithContext(ctx))
	if st.worked {
		st.req.Header = st.req.Header.Clone()
		st.s.note(st.req)
		if st.lastID != "" {
			st.req.Header.Set(outbound.HeaderEvent, st.lastID)
		}
	}
	resp, err := st.s.out.Send(st.req)
	if err != nil {
		cancel()
		return nil
	}
	if resp.StatusCode == http.StatusOK && outbound.MediaType(resp) == outbound.TypeSSE {
		if st.worked && st.lastID == "" {
			st.missed()
		}
		st.worked, st.opened = true, time.Now()
		st.s.habits.streams.Store(true)
		st.body = outbound.CancelBody(resp.Body, cancel)
		return resp
	}
	e, _ := st.s.judge(st.req, resp, nil)
	cancel()
	st.refused(resp.StatusCode, e)
	return nil
}

// refused decides what follows from a refusal of the stream.
func (st *stream) refused(status int, e *mcpbridge.Error) {
	switch {
	case e.Session == mcpbridge.Gone && st.worked:
		st.s.Expire(e)
		st.again = false
	case st.worked, e.Class == mcpbridge.Unauthorized, e.Class == mcpbridge.RateLimited, e.Class == mcpbridge.ServerError, status == http.StatusConflict:
		st.busy = e.RetryAfter
		if st.worked && e.Doubt {
			st.s.Watcher.Doubt(http.MethodGet, e)
		}
	default:
		st.again = false // this server has no such stream
		if st.own == nil {
			st.s.elsewhere.release()
		}
		if e.Session != mcpbridge.Gone {
			st.s.habits.streams.Store(false)
		}
	}
}

// untilCut returns a context that ends with the session, here or for the SDK. It has
// no values of the SDK's request, which are those of the handshake.
func (st *stream) untilCut() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(wire.InBackground(st.s.Cut))
	stop := context.AfterFunc(st.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// Read reads whole events, so that a stream that is cut in the middle of one does
// not garble the next. It ends with the session, and not before, even if nothing
// more can come.
func (st *stream) Read(p []byte) (int, error) {
	if st.first != nil {
		<-st.first
		st.first = nil
	}
	for !st.Ready() {
		if st.body == nil && !st.reopen() {
			return 0, io.EOF
		}
		n, err := st.body.Read(p)
		if !st.Feed(p[:n], wire.MaxResult(st.s.client.Config), st) || err != nil || st.untaken {
			st.Close() //nolint:errcheck // it has none
		}
	}
	return st.Next(p), nil
}

// Close ends the real stream, and drops the event that was coming.
func (st *stream) Close() error {
	st.untaken = false
	if st.body != nil {
		st.body.Close()
	}
	st.body = nil
	st.retryAfter(st.Partial())
	st.DropPartial()
	st.ended()
	return nil
}

// ended notes how long the stream has lasted. A stream that ends at once again and again is
// opened less often, and makes the session doubtful.
func (st *stream) ended() {
	if time.Since(st.opened) >= streamSteady {
		st.delay, st.short = streamRetryMin, 0
		return
	}
	if st.short++; st.short%streamShort == 0 {
		st.s.Watcher.Doubt("", nil)
	}
}

// reopen opens the stream again, for as long as it takes. It returns false when the
// session has ended.
func (st *stream) reopen() bool {
	ctx, cancel := st.untilCut()
	defer cancel()
	for st.again && ctx.Err() == nil {
		wait := st.delay/2 + rand.N(st.delay)
		if asked := max(st.busy, st.retry); asked > 0 {
			wait = min(max(asked, streamRetryMin), streamRetryMax)
		}
		st.busy, st.delay = 0, min(2*st.delay, streamRetryMax)
		if !wire.Sleep(ctx, wait) {
			return false
		}
		headers, cancel := context.WithTimeout(ctx, streamHeaders)
		st.open(headers) //nolint:bodyclose // it is st.body
		cancel()
		if st.body != nil {
			return true
		}
	}
	<-ctx.Done()
	return false
}

// OnEvent notes what an event says about the stream, and drops responses to other connections, and
// what is no message.
func (st *stream) OnEvent(e rpc.Event) []byte {
	// Subscriptions are made anew, not resumed; and no header can carry a control character.
	if e.ID != nil && st.req.Method == http.MethodGet && bytes.IndexFunc(e.ID, unicode.IsControl) < 0 {
		st.lastID = string(e.ID)
	}
	st.retryAfter(e)
	if !e.IsMessage() || len(e.Data) == 0 {
		return e.Lines
	}
	msg, err := rpc.Decode(e.Data)
	if err != nil || !st.admits(msg.Message) {
		return e.With(nil) // the SDK would end the session for what is no message, with its calls
	}
	return st.s.readEvent(e, msg, st.own, nil)
}

// admits reports whether the SDK gets a message. Over HTTP a server that does not take the answers to
// its requests loses the stream, and not the session, whose calls have streams of their own.
func (st *stream) admits(msg jsonrpc.Message) bool {
	req, ok := msg.(*jsonrpc.Request)
	if !ok {
		return true
	}
	if st.untaken {
		return false
	}
	admitted, err := st.s.admit(nil, req)
	st.untaken = errors.Is(err, wire.ErrUntaken)
	return admitted
}

// retryAfter notes what an event says about how soon the stream is opened again.
func (st *stream) retryAfter(e rpc.Event) {
	if ms, err := strconv.Atoi(string(e.Retry)); err == nil && ms >= 0 {
		st.retry = time.Duration(ms) * time.Millisecond
	}
}
