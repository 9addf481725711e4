package streamable

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
)

const (
	// streamWait is how long the opening of a session waits for the answer to the GET.
	streamWait = 300 * time.Millisecond
	// subscribeWait bounds the wait for the first answer to subscriptions/listen. After that the stream is opened
	// in the background.
	subscribeWait = 3 * time.Second
)

// standalone opens the standalone stream of a session. The SDK would wait for it (go-sdk#633).
type standalone struct {
	*session
	pending <-chan struct{} // closed when the GET is answered; nil unless the end of the handshake waits for that
}

// streamHeader is the header of streams that are still to be opened. Read-only.
var streamHeader = http.Header{"Content-Type": {outbound.TypeSSE}}

// isStandalone reports whether a request is for the standalone stream.
func isStandalone(req *http.Request) bool {
	return req.Method == http.MethodGet && req.Header.Get(outbound.HeaderEvent) == ""
}

// open answers the SDK's GET. A session works without the stream, so that the opening of the session waits only for
// streamWait. It does not wait at all if an earlier answer was late, as through a proxy that holds
// headers back until there is a body. If the server has opened a stream before, the handshake continues in the
// meantime, and only its end waits.
func (s *standalone) open(req *http.Request) *http.Response {
	none := func() *http.Response { return outbound.Respond(req, http.StatusMethodNotAllowed, "", nil) }
	if s.client.Config.NoStream {
		return none()
	}
	s.awaited.claim()
	st := newStream(s.session, req, nil, func() { s.Watcher.Missed(s.Watcher.Announced()) })
	first := make(chan struct{})
	st.first = first
	go func() { // a request needs a large stack, and the goroutine that reads the stream would keep it
		defer close(first)
		st.open(st.ctx) //nolint:bodyclose // it is st.body
	}()
	switch {
	case s.habits.lateStreams.Load():
	case !s.IsOpen.Load() && s.habits.streams.Load():
		s.pending = first
	case s.await(req.Context(), first) && (st.body == nil && !st.again || s.Cut.Err() != nil):
		return none()
	}
	return &http.Response{StatusCode: http.StatusOK, Header: streamHeader, Body: st, ContentLength: -1}
}

// AwaitStream waits for the answer to the GET, if the end of the handshake has to.
func (s *standalone) AwaitStream(ctx context.Context) {
	if s.pending != nil {
		s.await(ctx, s.pending)
		s.pending = nil
	}
}

// await waits for the answer to the GET that opens a stream, and reports whether it came.
func (s *standalone) await(ctx context.Context, first <-chan struct{}) bool {
	select {
	case <-first:
		return true
	case <-ctx.Done():
		return false
	case <-time.After(min(streamWait, s.ConnectTimeout/3)): // the rest is for the handshake
		s.habits.lateStreams.Store(true)
		return false
	}
}

// subscribe answers the SDK's subscriptions/listen, which opens the standalone stream of protocol
// 2026-07-28. The SDK sends it once (go-sdk#1283).
func (s *standalone) subscribe(m outbound.Message) *http.Response {
	var params struct {
		Params mcp.SubscriptionsListenParams `json:"params"`
	}
	if err := json.Unmarshal(rpc.BodyOf(m.Request), &params); err == nil && !s.client.Config.NoStream {
		headers, cancel := context.WithTimeout(m.Request.Context(), subscribeWait)
		defer cancel()
		st := newStream(s.session, m.Request, m.Exchange, func() { s.Watcher.Missed(params.Params.Notifications) })
		resp := st.open(headers)
		if resp == nil && st.again {
			resp = outbound.Respond(m.Request, http.StatusOK, outbound.TypeSSE, nil)
		}
		if resp != nil {
			resp.Body, resp.ContentLength = st, -1
			return resp
		}
	}
	return outbound.Respond(m.Request, http.StatusOK, outbound.TypeJSON, rpc.Failure(m.ID, rpc.CodeMethodNotFound, "there is no such stream"))
}
