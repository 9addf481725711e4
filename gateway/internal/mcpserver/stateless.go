package mcpserver

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// newStateless returns a stateless request, which gets an id of its own: clients that are one for the handler may use the same ids. Its
// stream is for its response, and what belongs to it.
func (l *httpLink) newStateless(m *Message, headers http.Header, connection context.Context) (*stream, *Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	own := *m
	own.ID = json.RawMessage(strconv.Quote(l.names + strconv.Itoa(l.last)))
	r := &Request{Message: &own, Headers: headers, original: m.ID, connection: connection}
	s := &stream{changed: make(chan struct{}, 1), only: r, open: map[string]bool{string(own.ID): true}}
	l.requests[string(own.ID)] = s
	return s, r
}

// answer writes the stream of a stateless request: as JSON with the status of its response, unless something else comes first, and
// else as events.
func (s *stream) answer(w http.ResponseWriter, r *http.Request, l *httpLink) {
	out := &eventWriter{w: w, out: http.NewResponseController(w)}
	timer := time.NewTimer(keepAlive)
	defer timer.Stop()
	for next, begun := 0, false; ; {
		messages, first, last := s.take(next)
		next = first + len(messages)
		switch {
		case last && !begun && len(messages) == 1 && s.status != 0:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(s.status)
			w.Write(messages[0]) //nolint:errcheck // the client has gone then
			return
		case len(messages) > 0 && !begun:
			out.begin(0, false)
			begun = true
		}
		for i, data := range messages {
			out.event(first+i, data)
		}
		if last || out.err != nil {
			return // which sends what was written
		}
		if len(messages) > 0 {
			out.flush()
		}
		select {
		case <-s.changed:
		case <-timer.C:
			if !begun {
				out.begin(0, false)
				begun = true
			}
			out.comment()
			timer.Reset(keepAlive)
		case <-r.Context().Done():
			return
		case <-l.c.Context.Done():
			l.loseAll() // and their responses end the stream
		}
	}
}
