package faults

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"syscall"
)

// Local returns a server without a socket. Only an HTTP client whose transport is this
// server can reach it: see [Server.RoundTrip]. It can run inside a bubble of
// testing/synctest.
func Local(fresh func() http.Handler) *Server {
	s := newServer(fresh)
	s.addr, s.local = "local.invalid", true
	s.start() //nolint:errcheck // it does not listen
	return s
}

// errConnectionRefused is the error of a request that nobody listens to. A handler of a
// local server may panic with it.
var errConnectionRefused error = &net.OpError{Op: "dial", Net: "local", Err: syscall.ECONNREFUSED}

// errReset is the error of a connection that breaks.
var errReset = errors.New("local: connection reset by peer")

// RoundTrip sends a request to a server without a socket. It implements
// [http.RoundTripper].
func (s *Server) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	life, handler := s.life, s.serving(s.handler)
	s.mu.Unlock()
	if life == nil || life.Err() != nil {
		return nil, refused(req)
	}
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		req.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(life, cancel)
	in := req.Clone(ctx)
	in.Body, in.RequestURI, in.RemoteAddr = io.NopCloser(bytes.NewReader(body)), req.URL.RequestURI(), "local"
	in.ContentLength, in.Host, in.GetBody = int64(len(body)), req.URL.Host, nil
	out := &localAnswer{header: http.Header{}, life: life, begun: make(chan struct{}), cancel: cancel}
	out.more = sync.NewCond(&out.mu)
	go func() {
		defer stop()
		defer func() {
			if v := recover(); v == nil {
				out.end(io.EOF)
			} else if v == http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
				out.end(errReset)
			} else if v == errConnectionRefused { //nolint:errorlint // it is ours
				out.end(errConnectionRefused)
			} else {
				panic(v)
			}
		}()
		handler.ServeHTTP(out, in)
	}()
	context.AfterFunc(ctx, func() { out.end(context.Canceled) })
	select {
	case <-out.begun:
	case <-ctx.Done():
		if err := req.Context().Err(); err != nil {
			return nil, err
		}
		return nil, errReset
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	if out.status == 0 {
		cancel()
		if out.err == errConnectionRefused { //nolint:errorlint // it is ours
			return nil, refused(req)
		}
		return nil, out.err
	}
	return &http.Response{
		Status: http.StatusText(out.status), StatusCode: out.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: out.sent, Body: out, ContentLength: -1, Request: req,
	}, nil
}

// refused returns the error of a request that nobody listens to. It reports, as net/http
// does, that a connection was wanted, and none was there.
func refused(req *http.Request) error {
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.GetConn != nil {
		trace.GetConn(req.URL.Host)
	}
	return errConnectionRefused
}

// localAnswer is an answer in memory: the handler writes it, and the client reads it as
// the body of a response.
type localAnswer struct {
	header http.Header
	life   context.Context // of the server: after it nothing is sent
	begun  chan struct{}   // closed when the status is written, or at the end
	cancel context.CancelFunc

	mu     sync.Mutex
	more   *sync.Cond
	status int
	sent   http.Header // a copy from when the status was written
	rest   []byte
	err    error // returned by Read once rest is empty
}

func (a *localAnswer) Header() http.Header { return a.header }

func (a *localAnswer) WriteHeader(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begin(status)
}

// begin is called with the lock held.
func (a *localAnswer) begin(status int) {
	if a.status == 0 && a.err == nil && a.life.Err() == nil {
		a.status, a.sent = status, a.header.Clone()
		for name, values := range a.sent {
			if len(values) == 0 {
				delete(a.sent, name)
			}
		}
		close(a.begun)
	}
}

func (a *localAnswer) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begin(http.StatusOK)
	if a.err != nil {
		return 0, a.err
	}
	if a.life.Err() != nil {
		return 0, errReset
	}
	a.rest = append(a.rest, p...)
	a.more.Broadcast()
	return len(p), nil
}

// Flush sends the headers, unless they are already sent.
func (a *localAnswer) Flush() { a.WriteHeader(http.StatusOK) }

// end ends the answer. Further calls do nothing.
func (a *localAnswer) end(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return
	}
	if a.life.Err() != nil {
		err = errReset
	}
	if err == io.EOF { //nolint:errorlint // it is ours
		a.begin(http.StatusOK)
	}
	a.err = err
	if a.status == 0 {
		close(a.begun)
	}
	a.more.Broadcast()
}

// Read is called by the client.
func (a *localAnswer) Read(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.rest) == 0 && a.err == nil {
		a.more.Wait()
	}
	if len(a.rest) == 0 {
		return 0, a.err
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// Close is called by the client.
func (a *localAnswer) Close() error {
	a.cancel()
	a.end(io.ErrClosedPipe)
	return nil
}
