package tests

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// http2Server is an HTTP/2 server in front of another server, its backend. It can reset a
// stream before the backend gets the request, or after the backend has handled it.
type http2Server struct {
	net.Listener
	backend http.RoundTripper

	mu    sync.Mutex
	fault func(method string) *reset // by the method of JSON-RPC or HTTP; may be nil
	conns map[*http2Conn]bool
}

// reset is a way to end a stream without an answer.
type reset struct {
	name   string
	late   bool // after the backend has handled the request
	midway bool // after the headers of the answer were sent
	code   http2.ErrCode
	goAway bool // with a GOAWAY: the connection takes no more streams
	cut    bool // the connection is closed
}

// unprocessed reports whether the client gets proof that the request was not handled.
func (r *reset) unprocessed() bool {
	return !r.late && !r.cut && (r.code == http2.ErrCodeRefusedStream || r.goAway)
}

// resets returns all ways to end a stream.
func resets() (all []reset) {
	all = []reset{
		{name: "refused", code: http2.ErrCodeRefusedStream},
		{name: "going away below it", goAway: true},
		{name: "refused after the headers of its answer", late: true, midway: true, code: http2.ErrCodeRefusedStream},
		{name: "going away with it after it ran", late: true, goAway: true, cut: true},
	}
	for _, code := range []http2.ErrCode{http2.ErrCodeNo, http2.ErrCodeProtocol, http2.ErrCodeInternal} {
		all = append(all,
			reset{name: code.String() + " before it ran", code: code},
			reset{name: code.String() + " after it ran", code: code, late: true},
			reset{name: code.String() + " in its answer", code: code, late: true, midway: true})
	}
	return append(all, reset{name: "cut before it ran", cut: true}, reset{name: "cut after it ran", late: true, cut: true})
}

// overHTTP2 runs a scenario on a server named "s" over HTTP/2.
func overHTTP2(t *testing.T, srv mcpbridge.Server, scenario func(h *harness, e *testServer, front *http2Server)) {
	t.Helper()
	before := resourcesInUse()
	tools := faults.NewTools()
	e := &testServer{faults.Local(tools.Handler), tools, t}
	defer e.close() // also when the scenario fails
	front := serveHTTP2(t, e.Server)
	defer front.closeAll()
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	srv.Name, srv.URL, srv.HTTPClient = "s", "https://"+front.Addr().String()+"/mcp", &http.Client{Transport: transport}
	h := start(t, supervisor.Config{Servers: []mcpbridge.Server{srv}, BackoffBase: time.Millisecond})
	defer h.stop()
	h.executed, h.overlaps = e.Executions, e.Overlaps
	scenario(h, e, front)
	front.inject(nil)
	h.stop()
	transport.CloseIdleConnections()
	front.closeAll()
	e.close()
	h.verify()
	before.verify(t)
}

func serveHTTP2(t *testing.T, behind http.RoundTripper) *http2Server {
	t.Helper()
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.StartTLS()
	certificates := web.TLS.Certificates
	web.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certificates, NextProtos: []string{"h2"}})
	require.NoError(t, err)
	s := &http2Server{Listener: l, backend: behind, conns: map[*http2Conn]bool{}}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

// inject sets the function that says how the stream of a request ends.
func (s *http2Server) inject(fault func(method string) *reset) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

// closeAll closes the listener and all connections.
func (s *http2Server) closeAll() {
	s.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Close()
	}
}

// http2Conn is one connection.
type http2Conn struct {
	net.Conn
	*http2Server
	ctx context.Context

	mu      sync.Mutex // guards the fields below
	frames  *http2.Framer
	block   bytes.Buffer
	headers *hpack.Encoder
	last    uint32 // the last stream whose request was forwarded, or may have been
	away    bool   // no later stream is forwarded
}

// http2Stream is a request that comes in.
type http2Stream struct {
	id     uint32
	req    *http.Request
	body   bytes.Buffer
	cancel context.CancelFunc
}

func (s *http2Server) serve(conn net.Conn) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &http2Conn{Conn: conn, http2Server: s, ctx: ctx, frames: http2.NewFramer(conn, conn)}
	c.headers = hpack.NewEncoder(&c.block)
	c.frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	s.mu.Lock()
	s.conns[c] = true
	s.mu.Unlock()
	defer func() {
		cancel()
		conn.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, c)
	}()
	if _, err := io.CopyN(io.Discard, conn, int64(len(http2.ClientPreface))); err != nil || c.frames.WriteSettings() != nil {
		return
	}
	streams := map[uint32]*http2Stream{}
	for {
		f, err := c.frames.ReadFrame()
		if err != nil {
			return
		}
		stream, ended := streams[f.Header().StreamID], false
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				c.write(func(fr *http2.Framer) error { return fr.WriteSettingsAck() })
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				c.write(func(fr *http2.Framer) error { return fr.WritePing(true, f.Data) })
			}
		case *http2.RSTStreamFrame:
			if stream != nil {
				stream.cancel()
			}
		case *http2.MetaHeadersFrame:
			stream = newHTTP2Stream(ctx, f)
			streams[stream.id], ended = stream, f.StreamEnded()
		case *http2.DataFrame:
			stream.body.Write(f.Data())
			if n := f.Header().Length; n > 0 {
				c.write(func(fr *http2.Framer) error { return fr.WriteWindowUpdate(0, n) })
			}
			ended = f.StreamEnded()
		}
		if ended {
			go c.answer(stream)
		}
	}
}

func newHTTP2Stream(ctx context.Context, f *http2.MetaHeadersFrame) *http2Stream {
	s := &http2Stream{id: f.StreamID}
	ctx, s.cancel = context.WithCancel(ctx)
	url := "https://" + f.PseudoValue("authority") + f.PseudoValue("path")
	s.req, _ = http.NewRequestWithContext(ctx, f.PseudoValue("method"), url, http.NoBody) // the client has validated the URL
	for _, field := range f.RegularFields() {
		s.req.Header.Add(field.Name, field.Value)
	}
	return s
}

func (c *http2Conn) write(frame func(*http2.Framer) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if frame(c.frames) != nil {
		c.Close()
	}
}

// answer forwards a complete request to the backend and sends the answer, or ends the
// stream as its fault says.
func (c *http2Conn) answer(s *http2Stream) {
	defer s.cancel()
	s.req.Body = io.NopCloser(&s.body)
	fault := c.faultOf(s)
	if fault != nil && !fault.late {
		c.reset(s, fault)
		return
	}
	if !c.forward(s) {
		return
	}
	resp, err := c.backend.RoundTrip(s.req)
	if err != nil {
		c.write(func(fr *http2.Framer) error { return fr.WriteRSTStream(s.id, http2.ErrCodeInternal) })
		return
	}
	defer resp.Body.Close()
	if fault != nil {
		if s.req.Method != http.MethodGet { // the answer to a GET does not end
			io.Copy(io.Discard, resp.Body)
		}
		if fault.midway {
			c.respond(s, resp)
		}
		c.reset(s, fault)
		return
	}
	c.respond(s, resp)
	for data := make([]byte, 8<<10); err == nil; {
		var n int
		n, err = resp.Body.Read(data)
		c.write(func(fr *http2.Framer) error { return fr.WriteData(s.id, err == io.EOF, data[:n]) }) //nolint:errorlint // io.Reader returns it unwrapped
	}
	if err != io.EOF { //nolint:errorlint // as above
		c.write(func(fr *http2.Framer) error { return fr.WriteRSTStream(s.id, http2.ErrCodeInternal) })
	}
}

// faultOf returns how the stream ends, or nil if it is answered.
func (c *http2Conn) faultOf(s *http2Stream) *reset {
	c.http2Server.mu.Lock()
	defer c.http2Server.mu.Unlock()
	if c.fault == nil {
		return nil
	}
	_, method, _ := strings.Cut(s.body.String(), `"method":"`)
	method, _, _ = strings.Cut(method, `"`)
	if method == "" {
		method = s.req.Method
	}
	return c.fault(method)
}

// forward reports whether the backend gets the request.
func (c *http2Conn) forward(s *http2Stream) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away && s.id > c.last {
		return false
	}
	c.last = max(c.last, s.id)
	return true
}

// reset ends a stream.
func (c *http2Conn) reset(s *http2Stream, r *reset) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case r.goAway && !r.late && s.id <= c.last: // a later request was forwarded
		c.frames.WriteRSTStream(s.id, http2.ErrCodeRefusedStream)
	case r.goAway && !c.away:
		c.away = true
		c.frames.WriteGoAway(c.last, r.code, nil)
	case !r.goAway && !r.cut:
		c.frames.WriteRSTStream(s.id, r.code)
	}
	if r.cut {
		c.Close()
	}
}

// respond sends the headers of an answer.
func (c *http2Conn) respond(s *http2Stream, resp *http.Response) {
	c.write(func(fr *http2.Framer) error {
		c.block.Reset()
		c.headers.WriteField(hpack.HeaderField{Name: ":status", Value: strconv.Itoa(resp.StatusCode)})
		for name, values := range resp.Header {
			for _, value := range values {
				c.headers.WriteField(hpack.HeaderField{Name: strings.ToLower(name), Value: value})
			}
		}
		return fr.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: c.block.Bytes(), EndHeaders: true})
	})
}
