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
	// A stream that ends before streamSteady is short. After each streamShort short streams in a row, the session is in
	// doubt.
	streamSteady = 5 * time.Second
	streamShort  = 3
	// streamHeaders bounds the wait for the answer to a request that opens the stream again.
	streamHeaders = 30 * time.Second
)

// stream is the standalone stream of a session, over which the server sends notifications and requests of its own. The
// SDK would end the session after the stream has ended a few times, or was refused once (go-sdk#1175). So the SDK
// gets one stream that lasts as long as the session. Behind it, the goroutine of the SDK that reads opens the real
// stream again and again. A quiet stream has no buffer.
type stream struct {
	s      *session
	first  <-chan struct{} // closed after the first attempt; nil if that was made
	ctx    context.Context // of the SDK's request
	req    *http.Request   // the last one that was sent
	own    *wire.Exchange  // of subscriptions/listen; nil for a GET, which has no response
	missed func()          // called when another stream begins, and is not resumed after the last event

	body   io.ReadCloser // the real stream, nil while there is none
	again  bool          // reopen opens it
	worked bool          // the server has opened a stream before
	lastID string        // the id of the last whole event
	delay  time.Duration // before it is opened again
	retry  time.Duration // the delay that an event asked for, or 0
	busy   time.Duration // the delay that the last refusal asked for, or 0
	opened time.Time     // when it was opened last
	short  int           // how many short streams there were in a row

	untaken bool // the server does not accept the answers to its requests: the stream is closed

	rpc.EventBuffer
	pauses outbound.Pauses // of body
}

func newStream(s *session, req *http.Request, own *wire.Exchange, missed func()) *stream {
	return &stream{s: s, ctx: req.Context(), req: req, own: own, missed: missed, delay: streamRetryMin}
}

// open tries to open the stream once. If that fails, again says whether to try again.
// It gives up if giveUp ends before the server has answered.
func (st *stream) open(giveUp context.Context) *http.Response {
	st.again = true
	ctx, cancel := st.untilCut()
	defer context.AfterFunc(giveUp, cancel)()
	st.req = outbound.Again(st.req.WithContext(ctx))
	if st.worked {
		st.req.Header = st.req.Header.Clone()
		st.s.noteRequest(st.req)
		if st.lastID != "" {
			st.req.Header.Set(outbound.HeaderEvent, st.lastID)
		}
	}
	resp, err := st.s.out.Send(st.req)
	if err != nil {
		cancel()
		return nil
	}
	st.s.noteResponse(st.req, resp)
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

// refused notes what follows from a refusal of the stream.
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
			st.s.awaited.release()
		}
		if e.Session != mcpbridge.Gone {
			st.s.habits.streams.Store(false)
		}
	}
}

// untilCut returns a context that ends with the session, or with the request of the SDK. It does not have the values of
// that request, which are those of the handshake.
func (st *stream) untilCut() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(wire.InBackground(st.s.Cut))
	stop := context.AfterFunc(st.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// Read reads whole events. The next stream can therefore follow an event that was cut off. Read returns the end only when
// the session ends, even if there will be no other stream.
func (st *stream) Read(p []byte) (int, error) {
	if st.first != nil {
		<-st.first
		st.first = nil
	}
	for !st.Ready() {
		if st.body == nil && !st.reopen() {
			return 0, io.EOF
		}
		limit := wire.MaxResult(st.s.client.Config)
		data, isPause, err := st.pauses.Read(st.body, &st.EventBuffer, p)
		if isPause {
			st.EndEvent(limit, st)
		}
		if !st.Feed(data, limit, st) || err != nil || st.untaken {
			st.Close() //nolint:errcheck // it has none
		}
	}
	return st.Next(p), nil
}

// Close ends the real stream, and drops an incomplete event.
func (st *stream) Close() error {
	st.untaken = false
	if st.body != nil {
		st.body.Close()
	}
	st.body, st.pauses = nil, outbound.Pauses{}
	st.retryAfter(st.Partial())
	st.DropPartial()
	st.ended()
	return nil
}

// ended notes how long the stream has lasted. Short streams are opened less and less often, and put the session in doubt.
func (st *stream) ended() {
	if time.Since(st.opened) >= streamSteady {
		st.delay, st.short = streamRetryMin, 0
		return
	}
	if st.short++; st.short%streamShort == 0 {
		st.s.Watcher.Doubt("", nil)
	}
}

// reopen opens the stream again. It returns false when the session has ended.
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

// OnEvent notes the id and the delay in an event. It drops responses to other connections, and data that is no message.
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
		return e.With(nil) // after data that is no message, the SDK would end the session with all its calls
	}
	if req, ok := msg.Message.(*jsonrpc.Request); ok {
		e = st.s.keep(e, req)
	}
	return st.s.readEvent(e, msg, st.own, nil)
}

// admits reports whether the SDK gets a message. A server that does not accept the answers to its requests loses this
// stream, and not the session, because calls have streams of their own.
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

// retryAfter notes the delay in an event.
func (st *stream) retryAfter(e rpc.Event) {
	if ms, err := strconv.Atoi(string(e.Retry)); err == nil && ms >= 0 {
		st.retry = time.Duration(ms) * time.Millisecond
	}
}
