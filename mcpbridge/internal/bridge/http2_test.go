package bridge

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/messages"
)

// h2 is an MCP server over HTTP/2 that answers calls of tools frame by frame.
type h2 struct {
	net.Listener
	// call answers the nth call of a tool, which runs before that.
	call func(fr *http2.Framer, stream uint32, nth int) (answered bool)

	mu    sync.Mutex
	calls int
	conns []net.Conn
}

func newH2(t *testing.T, call func(fr *http2.Framer, stream uint32, nth int) bool) (*h2, mcpbridge.Server) {
	t.Helper()
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.StartTLS()
	certificates := web.TLS.Certificates
	web.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certificates, NextProtos: []string{"h2"}})
	require.NoError(t, err)
	s := &h2{Listener: l, call: call}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			go s.serve(conn)
		}
	}()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	t.Cleanup(func() { // a connection may not be idle yet
		l.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, conn := range s.conns {
			conn.Close()
		}
	})
	return s, mcpbridge.Server{
		Name: "test", URL: "https://" + l.Addr().String() + "/mcp", ProtocolVersion: protocolLegacy, NoStream: true,
		HTTPClient: &http.Client{Transport: transport},
	}
}

// ran returns how often a tool has run.
func (s *h2) ran() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *h2) serve(conn net.Conn) {
	defer conn.Close()
	if _, err := io.CopyN(io.Discard, conn, int64(len(http2.ClientPreface))); err != nil {
		return
	}
	fr := http2.NewFramer(conn, conn)
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if fr.WriteSettings() != nil {
		return
	}
	methods, bodies := map[uint32]string{}, map[uint32][]byte{}
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			return
		}
		ended := false
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				err = fr.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				err = fr.WritePing(true, f.Data)
			}
		case *http2.MetaHeadersFrame:
			methods[f.StreamID] = f.PseudoValue("method")
			ended = f.StreamEnded()
		case *http2.DataFrame:
			bodies[f.StreamID] = append(bodies[f.StreamID], f.Data()...)
			ended = f.StreamEnded()
		}
		if id := f.Header().StreamID; ended && err == nil {
			s.answer(fr, id, methods[id], bodies[id])
		}
	}
}

func (s *h2) answer(fr *http2.Framer, stream uint32, method string, body []byte) {
	respond := func(status, body string, headers ...hpack.HeaderField) {
		var block bytes.Buffer
		e := hpack.NewEncoder(&block)
		for _, f := range append([]hpack.HeaderField{{Name: ":status", Value: status}, {Name: "content-type", Value: outbound.TypeJSON}}, headers...) {
			e.WriteField(f)
		}
		fr.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
		fr.WriteData(stream, true, []byte(body))
	}
	var msg rpc.Envelope
	json.Unmarshal(body, &msg)
	switch {
	case method != http.MethodPost:
		respond("405", "")
	case msg.Method == rpc.MethodInitialize:
		respond("200", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`, msg.ID, protocolLegacy),
			hpack.HeaderField{Name: "mcp-session-id", Value: testSession})
	case msg.Method == "tools/call":
		s.mu.Lock()
		s.calls++
		nth := s.calls
		s.mu.Unlock()
		if !s.call(fr, stream, nth) {
			respond("200", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, msg.ID))
		}
	case msg.IsCall():
		respond("200", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, msg.ID))
	default:
		respond("202", "")
	}
}

// H-A1: net/http would send a POST again by itself if GetBody were set.
func TestCallOverHTTP2IsSentOnce(t *testing.T) {
	for name, c := range map[string]struct {
		call func(fr *http2.Framer, stream uint32, nth int) bool
		want mcpbridge.Class
		fate mcpbridge.Fate
	}{
		"reset after it has run": {func(fr *http2.Framer, stream uint32, _ int) bool {
			fr.WriteRSTStream(stream, http2.ErrCodeProtocol)
			return true
		}, mcpbridge.Lost, mcpbridge.Broken},
		"refused": {func(fr *http2.Framer, stream uint32, nth int) bool {
			if nth == 1 {
				fr.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
			}
			return nth == 1
		}, mcpbridge.NotSent, mcpbridge.Alive},
		"going away below its stream": {func(fr *http2.Framer, stream uint32, nth int) bool {
			if nth == 1 {
				fr.WriteGoAway(stream-2, http2.ErrCodeNo, []byte("stream error: stream ID 1; REFUSED_STREAM"))
			}
			return nth == 1
		}, mcpbridge.NotSent, mcpbridge.Alive},
		"going away with its stream": {func(fr *http2.Framer, stream uint32, nth int) bool {
			fr.WriteGoAway(stream, http2.ErrCodeProtocol, []byte("stream error: stream ID 1; REFUSED_STREAM"))
			fr.WriteRSTStream(stream, http2.ErrCodeInternal)
			return true
		}, mcpbridge.Lost, mcpbridge.Broken},
	} {
		t.Run(name, func(t *testing.T) {
			server, srv := newH2(t, c.call)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			conn, err := New([]mcpbridge.Server{srv}, nil).Dial(ctx, dial.Request{Key: messages.Key{Server: "test"}, Down: func(*mcpbridge.Error) {}})
			require.NoError(t, err)
			e, _ := do(conn)
			require.NotNil(t, e)
			require.Equal(t, c.want, e.Class, "%v", e)
			require.Equal(t, c.fate, e.Session, "%v", e)
			require.Equal(t, 1, server.ran())
			if c.fate == mcpbridge.Alive {
				e, _ = do(conn)
				require.Nil(t, e, "the session goes on")
				require.Equal(t, 2, server.ran())
			}
			conn.Close(ctx)
		})
	}
}

// H-A2: the http.RoundTripper of the user does not report its connections to httptrace.
func TestRequestHandedToAnyTransportCountsAsSent(t *testing.T) {
	s := newScript()
	silent := answering(func(req *http.Request) (*http.Response, error) {
		req = readable(req)
		if rpc.Parse(rpc.BodyOf(req)).Method == "tools/call" {
			return nil, errors.New("some failure")
		}
		return s.RoundTrip(req)
	})
	c := s.attach(t, func(srv *mcpbridge.Server, _ *mcpbridge.Resume) { srv.HTTPClient.Transport = silent })
	e, _ := do(c)
	require.Equal(t, mcpbridge.Lost, e.Class)
	require.True(t, e.Sent)
	require.NoError(t, c.Close(t.Context()))
}

func TestRequestWithoutAConnectionIsNotSent(t *testing.T) {
	for name, transport := range map[string]http.RoundTripper{
		"net/http":    &http.Transport{},
		"wrapping it": answering((&http.Transport{}).RoundTrip),
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			c := s.attach(t, func(srv *mcpbridge.Server, _ *mcpbridge.Resume) {
				srv.HTTPClient.Transport = answering(func(req *http.Request) (*http.Response, error) {
					req = readable(req)
					if rpc.Parse(rpc.BodyOf(req)).Method == "tools/call" {
						to := req.Clone(req.Context())
						to.URL.Host = "127.0.0.1:1" // nobody listens there
						return transport.RoundTrip(to)
					}
					return s.RoundTrip(req)
				})
			})
			e, _ := do(c)
			require.Equal(t, mcpbridge.NotSent, e.Class, "%v", e)
			require.NoError(t, c.Close(t.Context()))
		})
	}
}
