package mcpserver

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// beginTime is how long the beginning of a response waits for the rest: to send it by itself would delay short calls.
	beginTime = 10 * time.Millisecond
	// resumeAfter is how long a client is to wait before it resumes a stream that has broken. The SDK for TypeScript tries twice,
	// each time after this pause, and then gives the call up: a restart may take almost twice as long. A longer pause delays
	// only what comes after a break, because no stream is ended before it has all responses.
	resumeAfter = 3 * time.Second
	// keepAlive is how often a stream without messages has a comment, which proxies and clients count as a sign of life.
	keepAlive = 25 * time.Second
	// resumeTime is how long a stream can be resumed that has all responses. After it, the next one drops it.
	resumeTime = 2 * time.Minute
)

const (
	// maxMessages and maxBytes bound what is kept of a stream to be resumed. The last message is kept in any case, which is
	// the response. On the standalone stream they also bound what nobody has read.
	maxMessages, maxBytes = 1000, 1 << 20
	// maxAnswered and maxAnsweredBytes bound what is kept of streams that have all responses. The last one is kept in any case.
	maxAnswered, maxAnsweredBytes = 200, 16 << 20
)

// stream is what goes to a client in the response to a POST, or beside them. The client can resume it after its connection has
// broken: the id of an event is "S-N", with the name of the stream, and the number of the message that comes next.
type stream struct {
	name    string
	changed chan struct{} // has an element when something has changed
	only    *Request      // the stateless request that it is for, or nil: such a stream cannot be resumed

	mu      sync.Mutex
	kept    [][]byte        // messages, as JSON on a line
	first   int             // the number of the first one
	written int             // how many messages were written at least once
	size    int             // of what is kept, in bytes
	open    map[string]bool // the requests without a response; nil for the standalone stream
	reader  chan struct{}   // closed when another response takes its place, or nil
	status  int             // of the response to a stateless request, once it was put
}

// answered is a stream that has all responses, since a time.
type answered struct {
	stream *stream
	at     time.Time
	size   int
}

// put adds a message.
func (s *stream) put(m *Message) {
	if s.only != nil && m.Method == "" {
		named := *m
		named.ID = s.only.original
		m = &named
	}
	data, err := m.encode()
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Method == "" && s.only != nil {
		s.status = statusOf(m)
		clear(s.open) // at once: a reader that expected more would begin events, and the status would be lost
	}
	s.kept, s.size = append(s.kept, data), s.size+len(data)
	s.trim()
	s.wake()
}

// trim drops the oldest messages. The caller holds the mutex.
func (s *stream) trim() {
	for len(s.kept) > 1 && (len(s.kept) > maxMessages || s.size > maxBytes) && (s.open == nil || s.first < s.written || s.only != nil && s.only.Method == "subscriptions/listen") {
		s.size -= len(s.kept[0])
		s.kept[0] = nil
		s.kept, s.first = s.kept[1:], s.first+1
	}
}

// wake wakes the reader. The caller holds the mutex.
func (s *stream) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// read makes the caller the reader, in place of the one before. replaced is closed when it no longer is.
func (s *stream) read() (replaced chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader != nil {
		close(s.reader)
	}
	s.reader = make(chan struct{})
	s.wake() // another may have taken the signal
	return s.reader
}

// take returns the messages from a number on, and the number of the first one. last is true if nothing more will come.
func (s *stream) take(next int) (messages [][]byte, first int, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = min(max(next, s.first), s.first+len(s.kept))
	messages = slices.Clone(s.kept[first-s.first:])
	s.written = max(s.written, first+len(messages))
	s.trim()
	return messages, first, s.open != nil && len(s.open) == 0
}

// maxNamed bounds the ids of requests in the name of a stream, in bytes.
const maxNamed = 1024

// add returns a new stream. The part of the name before the dot is unique across processes. The part after it lists the request ids, so
// that a client that resumes an unknown stream still gets an answer for each. The caller holds the mutex, or has the link alone.
func (l *httpLink) add(open map[string]bool) *stream {
	l.last++
	name := l.names + strconv.Itoa(l.last)
	if ids := strings.Join(slices.Collect(maps.Keys(open)), "\n"); len(ids) <= maxNamed {
		name += "." + base64.RawStdEncoding.EncodeToString([]byte(ids))
	}
	s := &stream{name: name, changed: make(chan struct{}, 1), open: open}
	l.streams[name] = s
	return s
}

// requestsIn returns the ids of the requests in the name of a stream: the standalone one has none. isKnown is false if the name
// does not say which they are.
func requestsIn(name string) (ids []string, isKnown bool) {
	_, encoded, isKnown := strings.Cut(name, ".")
	data, err := base64.RawStdEncoding.DecodeString(encoded)
	if len(data) > 0 {
		ids = strings.Split(string(data), "\n")
	}
	return ids, isKnown && err == nil
}

// newStream returns the stream for the responses to requests, or nil if there are none. areNew is false if one of them has the id of
// another that has no response.
func (l *httpLink) newStream(batch []*Message) (s *stream, areNew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	open := map[string]bool{}
	for _, m := range batch {
		if !m.isRequest() {
			continue
		}
		if open[string(m.ID)] || l.requests[string(m.ID)] != nil {
			return nil, false
		}
		open[string(m.ID)] = true
	}
	if len(open) == 0 {
		return nil, true
	}
	s = l.add(open)
	for id := range open {
		l.requests[id] = s
	}
	return s, true
}

// resumed returns the stream that a client resumes after an event, and the number of the message that comes next. Without an
// event, or after one of a standalone stream that is no longer kept, it is the standalone one, with what nobody has read.
func (l *httpLink) resumed(event string) (s *stream, next int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name, number, _ := strings.Cut(event, "-")
	next, err = strconv.Atoi(number)
	s = l.streams[name]
	if s != nil && err == nil && next >= 0 {
		return s, next, nil
	}
	ids, isKnown := requestsIn(name)
	switch {
	case event != "" && !isKnown:
		return nil, 0, errors.New("Last-Event-ID: the stream is not kept any more")
	case len(ids) > 0:
		return lost(ids), 0, nil
	}
	l.standalone.mu.Lock()
	defer l.standalone.mu.Unlock()
	return l.standalone, l.standalone.written, nil
}

// lost returns a stream for requests whose own is no longer kept. Its responses say so.
func lost(ids []string) *stream {
	s := &stream{changed: make(chan struct{}, 1), open: map[string]bool{}}
	for _, id := range ids {
		if json.Valid([]byte(id)) {
			s.put(lostResponse(id))
		}
	}
	return s
}

// lostResponse returns the response to a request whose own is lost.
func lostResponse(id string) *Message {
	return &Message{ID: json.RawMessage(id), Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: textLost}}
}

// lostResponse returns the response to a request when the client is cut off.
func (l *httpLink) lostResponse(id string) *Message {
	l.mu.Lock()
	s := l.requests[id]
	l.mu.Unlock()
	if s == nil || s.only == nil || s.only.Method != "subscriptions/listen" {
		return lostResponse(id)
	}
	result, _ := Encode(Ended(s.only)) // it can be encoded
	return &Message{ID: json.RawMessage(id), Result: result}
}

// Ended returns the result of a subscriptions/listen that has ended.
func Ended(r *Request) Object {
	meta := Object{mcp.MetaKeySubscriptionID: r.PublicID()}
	return Object{}.With("resultType", "complete").With("_meta", meta)
}

// textLost says to a model what is known of a request whose response is lost.
const textLost = "the response is lost: mcpactor was restarted, or the client asked for the response too late. The request may have run: check its effect before you repeat it"

// send puts a message into the stream of a request, or else into the standalone one.
func (l *httpLink) send(m *Message, of json.RawMessage) {
	if m.Method == "" {
		if s := l.take(of); s != nil { // or else nobody waits for it
			s.put(m)
			l.close(s, of)
		}
		return
	}
	l.mu.Lock()
	s := l.requests[string(of)]
	if s == nil {
		s = l.standalone
	}
	l.mu.Unlock()
	s.put(m)
}

// finish notes that a request no longer needs a response.
func (l *httpLink) finish(of json.RawMessage) {
	if s := l.take(of); s != nil {
		l.close(s, of)
	}
}

// loseAll answers all requests that have no response.
func (l *httpLink) loseAll() {
	l.mu.Lock()
	ids := slices.Collect(maps.Keys(l.requests))
	l.mu.Unlock()
	for _, id := range ids {
		l.send(l.lostResponse(id), json.RawMessage(id))
	}
}

// take returns the stream of a request, or nil, and forgets it: the client may use the id again as soon as it has the response.
func (l *httpLink) take(of json.RawMessage) *stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.requests[string(of)]
	delete(l.requests, string(of))
	return s
}

// close notes that a stream has the response to a request, or will not have it.
func (l *httpLink) close(s *stream, of json.RawMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.mu.Lock()
	delete(s.open, string(of))
	last, size := len(s.open) == 0, s.size
	s.wake()
	s.mu.Unlock()
	if !last || s.only != nil {
		return
	}
	now := time.Now()
	l.answered, l.size = append(l.answered, answered{s, now, size}), l.size+size
	for len(l.answered) > 1 && (len(l.answered) > maxAnswered || l.size > maxAnsweredBytes || now.Sub(l.answered[0].at) > resumeTime) {
		first := l.answered[0]
		delete(l.streams, first.stream.name)
		l.answered, l.size = l.answered[1:], l.size-first.size
	}
}

// serve writes a stream from a message on, until its end or that of the connection.
func (s *stream) serve(w http.ResponseWriter, r *http.Request, l *httpLink, next int) {
	replaced := s.read()
	out := &eventWriter{w: w, out: http.NewResponseController(w), stream: s.name}
	// Earlier clients take an event without data for a message.
	out.begin(next, s.open != nil && r.Header.Get(headerRevision) == Revisions[0])
	pause, beat := beginTime, out.flush
	if r.Method == http.MethodGet {
		pause = 0
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		messages, first, last := s.take(next)
		next = first + len(messages)
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
			beat()
			beat = out.comment
			timer.Reset(keepAlive)
		case <-replaced:
			return
		case <-r.Context().Done():
			return
		case <-l.c.Context.Done():
			if s.open == nil {
				return
			}
			l.loseAll() // and their responses end the stream
		}
	}
}

// eventWriter writes a stream as events.
type eventWriter struct {
	w      http.ResponseWriter
	out    *http.ResponseController
	stream string // its name
	err    error  // of the first write that failed
}

// begin begins the response, perhaps with an event without data, whose id lets the client resume, after a time.
func (o *eventWriter) begin(next int, prime bool) {
	o.w.Header().Set("Content-Type", "text/event-stream")
	o.w.Header().Set("Cache-Control", "no-cache, no-transform")
	o.w.Header().Set("X-Accel-Buffering", "no")
	o.w.WriteHeader(http.StatusOK)
	if prime {
		o.write(fmt.Appendf(nil, "id: %s-%d\nretry: %d\ndata: \n\n", o.stream, next, resumeAfter.Milliseconds()))
	}
}

func (o *eventWriter) event(number int, data []byte) {
	if o.stream == "" { // it cannot be resumed
		o.write([]byte("data: "), data, []byte("\n\n"))
		return
	}
	o.write(fmt.Appendf(nil, "id: %s-%d\ndata: ", o.stream, number+1), data, []byte("\n\n"))
}

func (o *eventWriter) comment() {
	o.write([]byte(": still there\n\n"))
	o.flush()
}

func (o *eventWriter) write(parts ...[]byte) {
	for _, part := range parts {
		if o.err == nil {
			_, o.err = o.w.Write(part)
		}
	}
}

func (o *eventWriter) flush() {
	if err := o.out.Flush(); o.err == nil {
		o.err = err
	}
}
