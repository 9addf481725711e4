package mcpserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// primeTime is when a response becomes a stream, whose client can resume it.
	primeTime = time.Second
	// keepAlive is how often a stream without messages has a comment, which proxies and clients count as a sign of life.
	keepAlive = 25 * time.Second
	// resumeTime is how long a stream can be resumed that has all responses. After it, the next one drops it.
	resumeTime = 2 * time.Minute
)

const (
	// maxMessages and maxBytes bound what is kept of a stream to be resumed. The last message is kept in any case, which is
	// the response. On the standalone stream they also bound what nobody has read.
	maxMessages, maxBytes = 1000, 1 << 20
	// maxAnswered bounds what is kept of streams that have all responses, in bytes. The last one is kept in any case.
	maxAnswered = 16 << 20
)

// stream is what goes to a client in the response to a POST, or beside them. The client can resume it after its connection has
// broken: the id of an event is "S-N", with the number of the stream, and of the message that comes next.
type stream struct {
	number  int
	changed chan struct{} // has an element when something has changed

	mu      sync.Mutex
	kept    [][]byte        // messages, as JSON on a line
	first   int             // the number of the first one
	written int             // how many messages were written at least once
	size    int             // of what is kept, in bytes
	open    map[string]bool // the requests without a response; nil for the standalone stream
	reader  chan struct{}   // closed when another response takes its place, or nil
}

// answered is a stream that has all responses, since a time.
type answered struct {
	stream *stream
	at     time.Time
}

// put adds a message.
func (s *stream) put(m *Message) {
	data, err := m.encode()
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept, s.size = append(s.kept, data), s.size+len(data)
	s.trim()
	s.wake()
}

// trim drops the oldest messages. The caller holds the mutex.
func (s *stream) trim() {
	for len(s.kept) > 1 && (len(s.kept) > maxMessages || s.size > maxBytes) && (s.open == nil || s.first < s.written) {
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

// add returns a new stream. The caller holds the mutex, or has the link alone.
func (l *httpLink) add(open map[string]bool) *stream {
	l.last++
	s := &stream{number: l.last, changed: make(chan struct{}, 1), open: open}
	l.streams[s.number] = s
	return s
}

// newStream returns the stream for the responses to requests, or nil if there are none.
func (l *httpLink) newStream(batch []*Message) *stream {
	open := map[string]bool{}
	for _, m := range batch {
		if m.isRequest() {
			open[string(m.ID)] = true
		}
	}
	if len(open) == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.add(open)
	for id := range open {
		l.requests[id] = s
	}
	return s
}

// resumed returns the stream that a client resumes after an event, and the number of the message that comes next. Without an
// event it is the standalone one, with what nobody has read.
func (l *httpLink) resumed(event string) (s *stream, next int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if event == "" {
		l.standalone.mu.Lock()
		defer l.standalone.mu.Unlock()
		return l.standalone, l.standalone.written, nil
	}
	var number int
	if _, err := fmt.Sscanf(event, "%d-%d", &number, &next); err == nil && next >= 0 {
		s = l.streams[number]
	}
	if s == nil {
		return nil, 0, errors.New("Last-Event-ID: the stream is not kept any more")
	}
	return s, next, nil
}

// send puts a message into the stream of a request, or else into the standalone one.
func (l *httpLink) send(m *Message, of json.RawMessage) {
	l.mu.Lock()
	s, its := l.requests[string(of)]
	if s == nil {
		s = l.standalone
	}
	l.mu.Unlock()
	isResponse := m.Method == ""
	if isResponse && !its {
		return // nobody waits for it
	}
	s.put(m)
	if isResponse {
		l.finish(of)
	}
}

// finish notes that a request needs no response any more.
func (l *httpLink) finish(of json.RawMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.requests[string(of)]
	delete(l.requests, string(of))
	if s == nil {
		return
	}
	s.mu.Lock()
	delete(s.open, string(of))
	last := len(s.open) == 0
	s.wake()
	s.mu.Unlock()
	if !last || l.streams[s.number] == nil {
		return
	}
	now, size := time.Now(), 0
	l.answered = append(l.answered, answered{s, now})
	for i, a := range slices.Backward(slices.Clone(l.answered)) {
		a.stream.mu.Lock()
		size += a.stream.size
		a.stream.mu.Unlock()
		if i < len(l.answered)-1 && (size > maxAnswered || now.Sub(a.at) > resumeTime) {
			l.forget(a.stream)
		}
	}
}

// forget drops a stream that nobody resumes. The caller holds the mutex.
func (l *httpLink) forget(s *stream) {
	delete(l.streams, s.number)
	l.answered = slices.DeleteFunc(l.answered, func(a answered) bool { return a.stream == s })
}

// serve writes a stream from a message on, until its end or that of the connection: as JSON if it is one response that has come
// soon and nothing else, or else as events.
func (s *stream) serve(w http.ResponseWriter, r *http.Request, l *httpLink, next int) {
	replaced := s.read()
	out := &eventWriter{w: w, out: http.NewResponseController(w), stream: s.number}
	primes := s.open != nil && r.Header.Get(headerRevision) == Revisions[0] // earlier clients take an event without data for a message
	pause := keepAlive
	if r.Method == http.MethodGet {
		out.begin(next, primes)
	} else if primes {
		pause = primeTime
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		messages, first, last := s.take(next)
		next = first + len(messages)
		if !out.began && last && next <= 1 {
			l.mu.Lock()
			l.forget(s)
			l.mu.Unlock()
			if next == 0 { // it was cancelled
				w.WriteHeader(http.StatusAccepted)
				return
			}
			writeJSON(w, http.StatusOK, messages[0])
			return
		}
		for i, data := range messages {
			out.event(first+i, data)
		}
		if len(messages) > 0 {
			out.flush()
		}
		if last || out.err != nil {
			return
		}
		select {
		case <-s.changed:
		case <-timer.C:
			if !out.began {
				out.begin(next, primes)
			} else {
				out.comment()
			}
			timer.Reset(keepAlive)
		case <-replaced:
			return
		case <-r.Context().Done():
			return
		case <-l.c.Context.Done():
			return
		}
	}
}

// eventWriter writes a stream as events.
type eventWriter struct {
	w      http.ResponseWriter
	out    *http.ResponseController
	stream int
	began  bool
	err    error // of the first write that failed
}

// begin begins the response, perhaps with an event without data, whose id lets the client resume.
func (o *eventWriter) begin(next int, prime bool) {
	o.began = true
	o.w.Header().Set("Content-Type", "text/event-stream")
	o.w.Header().Set("Cache-Control", "no-cache, no-transform")
	o.w.WriteHeader(http.StatusOK)
	if prime {
		o.write(fmt.Appendf(nil, "id: %d-%d\ndata: \n\n", o.stream, next))
	}
	o.flush()
}

func (o *eventWriter) event(number int, data []byte) {
	if !o.began {
		o.begin(number, false)
	}
	o.write(fmt.Appendf(nil, "id: %d-%d\ndata: ", o.stream, number+1), data, []byte("\n\n"))
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
