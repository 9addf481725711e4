package mcpbridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

const (
	streamRetryMin = 500 * time.Millisecond
	streamRetryMax = 30 * time.Second
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
// again for as long as it takes.
type stream struct {
	x      *exchanger
	req    *http.Request
	out    *io.PipeWriter
	lastID string        // the last event's id
	retry  time.Duration // what the server asked for, or 0
	busy   time.Duration // what its last refusal asked for, or 0
	worked bool          // the server has given us a stream before
	missed func()        // called when it gives us another that does not go on where it was cut
}

// openStream answers the SDK's GET. The first attempt is waited for: a server
// that accepts it and never answers cannot be connected to.
func (x *exchanger) openStream(req *http.Request) (*http.Response, error) {
	none := answer(req, http.StatusMethodNotAllowed, "", nil)
	if x.srv.NoStream {
		return none, nil
	}
	in, out := io.Pipe()
	s := &stream{x: x, req: req, out: out, missed: func() { x.conn.mayHaveMissed(x.conn.announced()) }}
	body, again := s.open(x.connecting)
	if x.connecting.Err() != nil || body == nil && !again {
		return none, nil
	}
	go s.run(body)
	resp := answer(req, http.StatusOK, typeSSE, nil)
	resp.Body, resp.ContentLength = in, -1
	return resp, nil
}

// listen answers the SDK's subscriptions/listen, the standalone stream of protocol
// 2026-07-28, which the SDK opens once.
func (x *exchanger) listen(req *http.Request, msg rpcEnvelope) (*http.Response, error) {
	none := answer(req, http.StatusOK, typeJSON, rpcFailure(msg.ID, codeMethodNotFound, "there is no such stream"))
	if x.srv.NoStream {
		return none, nil
	}
	var params struct {
		Params mcp.SubscriptionsListenParams `json:"params"`
	}
	if err := json.Unmarshal(bodyOf(req), &params); err != nil {
		return none, nil
	}
	in, out := io.Pipe()
	s := &stream{x: x, req: req, out: out, missed: func() { x.conn.mayHaveMissed(params.Params.Notifications) }}
	headers, cancel := context.WithTimeout(req.Context(), listenHeaders)
	defer cancel()
	body, again := s.open(headers)
	if body == nil && !again {
		return none, nil
	}
	go s.run(body)
	resp := answer(req, http.StatusOK, typeSSE, nil)
	resp.Body, resp.ContentLength = in, -1
	return resp, nil
}

// announced returns the notifications that the server has said it may send.
func (c *conn) announced() *mcp.NotificationSubscriptions {
	if c.x.connecting.Err() == nil { // it has not said anything yet
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

// open opens the stream once. Without a body it says whether to try again.
// It gives up when giveUp ends before the server has answered.
func (s *stream) open(giveUp context.Context) (body io.ReadCloser, again bool) {
	ctx, cancel := context.WithCancel(context.WithValue(s.req.Context(), backgroundKey{}, true))
	stop := context.AfterFunc(giveUp, cancel)
	defer stop()
	req := s.req.Clone(ctx)
	if req.GetBody != nil {
		req.Body, _ = req.GetBody() // of bytes, which does not fail
	}
	if s.lastID != "" {
		req.Header.Set(headerEvent, s.lastID)
	}
	resp, err := s.x.send(req)
	if err != nil {
		cancel()
		return nil, true
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode == http.StatusOK && kind == typeSSE {
		if s.worked && s.lastID == "" {
			s.missed()
		}
		s.worked = true
		return &cancelBody{resp.Body, cancel}, true
	}
	e, _ := s.x.judge(req, resp)
	cancel()
	switch {
	case e.Session == Gone && s.worked:
		s.x.expire(e)
		return nil, false
	case e.Class == Unauthorized, e.Class == RateLimited, e.Class == ServerError, resp.StatusCode == http.StatusConflict:
		s.busy = e.RetryAfter
		return nil, true
	}
	return nil, false // this server has no such stream
}

// run passes events on until the session is closed. It keeps the SDK's end
// open all that time, also when there is nothing more to come.
func (s *stream) run(body io.ReadCloser) {
	ctx := s.req.Context()
	defer s.out.Close() //nolint:errcheck // it has none
	for delay, again := streamRetryMin, true; again && ctx.Err() == nil; delay = min(2*delay, streamRetryMax) {
		if body != nil && s.pass(body) {
			delay = streamRetryMin
		}
		wait := delay/2 + rand.N(delay)
		if asked := max(s.busy, s.retry); asked > 0 {
			wait = min(max(asked, streamRetryMin), streamRetryMax)
		}
		s.busy = 0
		if !sleep(ctx, wait) {
			return
		}
		headers, cancel := context.WithTimeout(ctx, streamHeaders)
		body, again = s.open(headers)
		cancel()
	}
	if body != nil {
		body.Close()
	}
	<-ctx.Done()
}

// pass copies whole events, so that a stream cut in the middle of one does not
// garble the next. It reports whether there was any.
func (s *stream) pass(body io.ReadCloser) (any bool) {
	defer body.Close()
	r := bufio.NewReader(body)
	var event []byte
	begin, id := 0, s.lastID // of its last line; of the event
	for {
		part, err := r.ReadSlice('\n')
		event = append(event, part...)
		switch {
		case len(event) > s.x.srv.maxResult():
			return any
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return any
		}
		line := event[begin:]
		begin = len(event)
		switch field, value := fieldOf(line); field {
		case "id":
			// Subscriptions are made anew, not resumed; and no header can carry a
			// control character.
			if s.req.Method == http.MethodGet && strings.IndexFunc(value, unicode.IsControl) < 0 {
				id = value
			}
		case "retry":
			if ms, err := strconv.Atoi(value); err == nil && ms >= 0 {
				s.retry = time.Duration(ms) * time.Millisecond
			}
		}
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			s.x.conn.progress.hearEvent(event)
			if _, err := s.out.Write(event); err != nil {
				return any
			}
			any, event, begin, s.lastID = true, event[:0], 0, id
		}
	}
}

// fieldOf splits a line of an event stream.
func fieldOf(line []byte) (field, value string) {
	name, rest, _ := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(":"))
	return string(name), string(bytes.TrimPrefix(rest, []byte(" ")))
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
