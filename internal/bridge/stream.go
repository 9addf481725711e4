package bridge

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"

	"github.com/mcpactor/mcpactor/internal/bridge/rpc"
)

const (
	streamRetryMin = 500 * time.Millisecond
	streamRetryMax = 30 * time.Second
	// streamSteady is how long a stream lasts that does not end at once, and streamShort
	// how many in a row that do make the session doubtful.
	streamSteady = 5 * time.Second
	streamShort  = 3
	// streamWait is how long opening a session waits for the answer to the GET.
	streamWait = 300 * time.Millisecond
	// streamHeaders bounds the wait for a server to answer a GET that opens
	// the stream again.
	streamHeaders = 30 * time.Second
	// listenHeaders bounds the wait for a server to answer subscriptions/listen the
	// first time. Then it goes on in the background.
	listenHeaders = 3 * time.Second
)

// stream is the standalone stream of a session, over which the server sends
// what nobody asked for. The SDK would end the session when it is cut a few
// times, or refused once; but the session is the server's to end. So the SDK
// gets one stream that does not end, and behind it the real one is opened
// again for as long as it takes, by the SDK's goroutine that reads. Most streams
// say nothing most of the time: then there is no buffer of ours, either.
type stream struct {
	x      *exchanger
	first  <-chan struct{} // closed after the first attempt; nil when that was made
	ctx    context.Context // of the SDK's request
	req    *http.Request   // the last one
	missed func()          // called when the server gives us another that does not go on where it was cut

	body   io.ReadCloser // the real one, nil while there is none
	again  bool          // when it ends, or if there is none, it is opened again
	worked bool          // the server has given us a stream before
	lastID string        // the last event's id
	delay  time.Duration // before it is opened again
	retry  time.Duration // what the server asked for, or 0
	busy   time.Duration // what its last refusal asked for, or 0
	opened time.Time     // the last time
	short  int           // how often in a row it has ended soon after

	rpc.EventBuffer
	id string // of the event that is coming
}

// streamHeader is that of streams that are still to be opened. Read-only.
var streamHeader = http.Header{"Content-Type": {typeSSE}}

// openStream answers the SDK's GET. The stream is extra: opening a session waits for it
// for a moment only, and not at all for that of a server whose answers have taken longer,
// or come through a proxy that holds back headers until there is a body. From a server that
// has given a stream before, another is expected: then the handshake goes on meanwhile,
// and it is its end that waits.
func (x *exchanger) openStream(req *http.Request) (*http.Response, error) {
	at := x.conn.at
	none := func() (*http.Response, error) { return answer(req, http.StatusMethodNotAllowed, "", nil), nil }
	if x.srv.NoStream {
		return none()
	}
	s := x.newStream(req, func() { x.conn.mayHaveMissed(x.conn.announced()) })
	first := make(chan struct{})
	s.first = first
	go func() { // not where the stream is read: that goroutine stays, with its stack
		defer close(first)
		s.open(s.ctx) //nolint:bodyclose // it is s.body
	}()
	h := x.conn.dialing.Load()
	switch {
	case at.lateStreams.Load():
	case h != nil && at.streams.Load():
		h.stream = first
	case x.conn.await(req.Context(), first) && (s.body == nil && !s.again || x.conn.cut.Err() != nil):
		return none()
	}
	return &http.Response{StatusCode: http.StatusOK, Header: streamHeader, Body: s, ContentLength: -1}, nil
}

// await waits for the answer to the GET that opens a stream, and reports whether it came.
func (c *conn) await(ctx context.Context, first <-chan struct{}) bool {
	timer := time.NewTimer(min(streamWait, c.connectLimit/3)) // the rest is for the handshake
	defer timer.Stop()
	select {
	case <-first:
		return true
	case <-ctx.Done():
		return false
	case <-timer.C:
		c.at.lateStreams.Store(true)
		return false
	}
}

// listen answers the SDK's subscriptions/listen, the standalone stream of protocol
// 2026-07-28, which the SDK opens once.
func (x *exchanger) listen(req *http.Request, msg rpc.Envelope) (*http.Response, error) {
	var params struct {
		Params mcp.SubscriptionsListenParams `json:"params"`
	}
	if err := json.Unmarshal(rpc.BodyOf(req), &params); err == nil {
		headers, cancel := context.WithTimeout(req.Context(), listenHeaders)
		defer cancel()
		s := x.newStream(req, func() { x.conn.mayHaveMissed(params.Params.Notifications) })
		if resp := s.keepOpen(headers); resp != nil {
			return resp, nil
		}
	}
	return answer(req, http.StatusOK, typeJSON, rpc.Failure(msg.ID, rpc.CodeMethodNotFound, "there is no such stream")), nil
}

func (x *exchanger) newStream(req *http.Request, missed func()) *stream {
	return &stream{x: x, ctx: req.Context(), req: req, missed: missed, delay: streamRetryMin}
}

// keepOpen opens the stream, and returns a response with it as its body; nil where
// there is none.
func (s *stream) keepOpen(giveUp context.Context) *http.Response {
	if s.x.srv.NoStream {
		return nil
	}
	resp := s.open(giveUp)
	if resp == nil {
		if !s.again {
			return nil
		}
		resp = answer(s.req, http.StatusOK, typeSSE, nil)
	}
	resp.Header.Del(headerSession) // the SDK ends a session whose id changes
	resp.Body, resp.ContentLength = s, -1
	return resp
}

// announced returns the notifications that the server has said it may send.
func (c *conn) announced() *mcp.NotificationSubscriptions {
	if !c.isOpen() { // it has not said anything yet
		return nil
	}
	can := c.info.Server.Capabilities
	if can == nil {
		return nil
	}
	return &mcp.NotificationSubscriptions{
		ToolsListChanged:     can.Tools != nil && can.Tools.ListChanged,
		PromptsListChanged:   can.Prompts != nil && can.Prompts.ListChanged,
		ResourcesListChanged: can.Resources != nil && can.Resources.ListChanged,
	}
}

// mayHaveMissed says what may have been said while nobody listened.
func (c *conn) mayHaveMissed(wanted *mcp.NotificationSubscriptions) {
	if wanted == nil {
		return
	}
	if wanted.ToolsListChanged {
		c.unlearn()
		c.hear(&messages.ToolsChanged{})
	}
	if wanted.PromptsListChanged {
		c.hear(&messages.PromptsChanged{})
	}
	if wanted.ResourcesListChanged {
		c.hear(&messages.ResourcesChanged{})
	}
	for _, uri := range wanted.ResourceSubscriptions {
		c.hear(&messages.ResourceUpdated{URI: uri})
	}
}

// open opens the stream once. Without one it says, in again, whether to try again.
// It gives up when giveUp ends before the server has answered.
func (s *stream) open(giveUp context.Context) *http.Response {
	s.again = true
	ctx, cancel := s.whileOpen()
	defer context.AfterFunc(giveUp, cancel)()
	s.req = s.req.WithContext(ctx)
	if s.req.GetBody != nil {
		s.req.Body, _ = s.req.GetBody() // of bytes, which does not fail
	}
	if s.lastID != "" {
		s.req.Header = s.req.Header.Clone()
		s.req.Header.Set(headerEvent, s.lastID)
	}
	resp, err := s.x.send(s.req)
	if err != nil {
		cancel()
		return nil
	}
	if resp.StatusCode == http.StatusOK && mediaType(resp) == typeSSE {
		if s.worked && s.lastID == "" {
			s.missed()
		}
		s.worked, s.id, s.opened = true, s.lastID, time.Now()
		s.x.conn.at.streams.Store(true)
		s.body = &cancelBody{resp.Body, cancel}
		return resp
	}
	e, _ := s.x.judge(s.req, resp, nil)
	cancel()
	switch {
	case e.Session == mcpbridge.Gone && s.worked:
		s.x.expire(e)
		s.again = false
	case s.worked, e.Class == mcpbridge.Unauthorized, e.Class == mcpbridge.RateLimited, e.Class == mcpbridge.ServerError, resp.StatusCode == http.StatusConflict:
		s.busy = e.RetryAfter
		if s.worked && e.Doubt {
			s.x.conn.doubts.inquire(s.x.conn, kind{method: http.MethodGet, status: e.Status, code: e.Code})
		}
	default:
		s.again = false // this server has no such stream
		if e.Session != mcpbridge.Gone {
			s.x.conn.at.streams.Store(false)
		}
	}
	return nil
}

// whileOpen returns a context that ends with the session, here or for the SDK. It has
// no values of the SDK's request, which are those of the handshake.
func (s *stream) whileOpen() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithValue(s.x.conn.cut, backgroundKey{}, true))
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// Read reads whole events, so that a stream that is cut in the middle of one does
// not garble the next. It ends with the session, and not before, also when there is
// nothing more to come.
func (s *stream) Read(p []byte) (int, error) {
	if s.first != nil {
		<-s.first
		s.first = nil
	}
	for !s.Ready() {
		if s.body == nil && !s.reopen() {
			return 0, io.EOF
		}
		n, err := s.body.Read(p)
		if !s.Feed(p[:n], maxResult(s.x.srv), s) || err != nil {
			s.Close() //nolint:errcheck // it has none
		}
	}
	return s.Next(p), nil
}

// Close ends the real stream, and drops the event that was coming.
func (s *stream) Close() error {
	if s.body != nil {
		s.body.Close()
	}
	s.body = nil
	s.DropPartial()
	s.ended()
	return nil
}

// ended notes how long the stream has lasted. One that ends at once again and again is
// opened less often, and makes the session doubtful.
func (s *stream) ended() {
	if time.Since(s.opened) >= streamSteady {
		s.delay, s.short = streamRetryMin, 0
		return
	}
	if s.short++; s.short%streamShort == 0 {
		s.x.conn.suspect()
	}
}

// reopen opens the stream again, for as long as it takes. It returns false when the
// session has ended.
func (s *stream) reopen() bool {
	ctx, cancel := s.whileOpen()
	defer cancel()
	for s.again && ctx.Err() == nil {
		wait := s.delay/2 + rand.N(s.delay)
		if asked := max(s.busy, s.retry); asked > 0 {
			wait = min(max(asked, streamRetryMin), streamRetryMax)
		}
		s.busy, s.delay = 0, min(2*s.delay, streamRetryMax)
		if !sleep(ctx, wait) {
			return false
		}
		headers, cancel := context.WithTimeout(ctx, streamHeaders)
		s.open(headers) //nolint:bodyclose // it is s.body
		cancel()
		if s.body != nil {
			return true
		}
	}
	<-ctx.Done()
	return false
}

// onLine notes what a line says of the stream.
func (s *stream) OnLine(line []byte) {
	switch field, value := rpc.FieldOf(line); field {
	case "id":
		// Subscriptions are made anew, not resumed; and no header can carry a
		// control character.
		if s.req.Method == http.MethodGet && strings.IndexFunc(value, unicode.IsControl) < 0 {
			s.id = value
		}
	case "retry":
		if ms, err := strconv.Atoi(value); err == nil && ms >= 0 {
			s.retry = time.Duration(ms) * time.Millisecond
		}
	}
}

// onEvent notes that the stream works, and takes out what answers another connection.
func (s *stream) OnEvent(event []byte) []byte {
	s.lastID = s.id
	s.x.conn.progress.hearEvent(event)
	event, _ = s.x.ids.RestoreEvent(event, nil)
	return event
}

// cancelBody ends its request when it is closed.
type cancelBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *cancelBody) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}

// sleep waits for d, and reports whether ctx let it.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
