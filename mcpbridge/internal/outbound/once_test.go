package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// closedConnection is a connection of HTTP/2 that has closed when it gets a request.
type closedConnection struct{}

func (closedConnection) RoundTrip(req *http.Request) (*http.Response, error) {
	req.Body.Close()
	return nil, noCachedConnection{errors.New("closed")}
}

// noCachedConnection is an error by which a connection of HTTP/2 tells net/http that it has
// not taken a request.
type noCachedConnection struct{ error }

func (noCachedConnection) IsHTTP2NoCachedConnError() {}

func TestRequestThatAClosedHTTP2ConnectionDidNotTakeIsNotSent(t *testing.T) {
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.EnableHTTP2 = true
	web.StartTLS()
	defer web.Close()
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}},
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{
			"h2": func(string, *tls.Conn) http.RoundTripper { return closedConnection{} },
		},
	}
	defer transport.CloseIdleConnections()
	ex := wire.NewExchange(t.Context(), nil, false)
	req, err := http.NewRequestWithContext(ex, http.MethodPost, web.URL, strings.NewReader("{}"))
	require.NoError(t, err)
	_, err = newOnce(transport, false).RoundTrip(req)
	require.Error(t, err)
	require.Equal(t, mcpbridge.NotSent, ex.Explain(t.Context(), err, "").Class, "%v", err)
	require.Equal(t, mcpbridge.Alive, ex.Explain(t.Context(), err, "").Session)
}

// ending is an HTTP server that ends its idle connections, and counts the requests by their bodies.
type ending struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
	got   map[string]int
}

func (e *ending) Accept() (net.Conn, error) {
	c, err := e.Listener.Accept()
	if err == nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.conns = append(e.conns, c)
	}
	return c, err
}

func (e *ending) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.got[string(body)]++
}

// end ends all connections, as the end of the process does. The client has the ends then, and may not have read them.
func (e *ending) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.conns {
		c.Close()
	}
	e.conns = nil
}

// A request that meets the end of an idle connection is sent over another one, or is certainly not sent.
func TestRequestOnAConnectionThatTheServerHadEndedIsNotSent(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the end is known here when net/http has read it")
	}
	for name, secure := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			e := &ending{got: map[string]int{}}
			web := httptest.NewUnstartedServer(e)
			e.Listener, web.Listener = web.Listener, e
			transport := &http.Transport{}
			if secure {
				web.StartTLS()
				transport.TLSClientConfig = web.Client().Transport.(*http.Transport).TLSClientConfig
			} else {
				web.Start()
			}
			defer web.Close()
			defer transport.CloseIdleConnections()
			once := newOnce(transport, !secure)
			var sent, notSent int
			post := func(body string) {
				ex := wire.NewExchange(t.Context(), nil, true)
				req, err := http.NewRequestWithContext(ex, http.MethodPost, web.URL, strings.NewReader(body))
				require.NoError(t, err)
				resp, err := once.RoundTrip(req)
				if err != nil {
					require.Equal(t, mcpbridge.NotSent, ex.Explain(t.Context(), err, "").Class, "%v", err)
					notSent++
					return
				}
				_, err = io.Copy(io.Discard, resp.Body)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				sent++
			}
			for i := range 30 {
				post(fmt.Sprint("before ", i))
				for idle := time.Now(); time.Since(idle) < 2*time.Millisecond; {
					runtime.Gosched()
				}
				e.end()
				post(fmt.Sprint("after ", i))
			}
			require.Equal(t, 60, sent+notSent)
			require.Len(t, e.got, sent)
			for body, n := range e.got {
				require.Equal(t, 1, n, body)
			}
		})
	}
}

// net/http looks for another connection if it could write nothing to an idle one. If there is none, nothing was sent.
func TestRequestThatGetsNoSecondConnectionIsNotSent(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	dials, broken := 0, new(atomic.Bool)
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials++; dials > 1 {
			return nil, syscall.ECONNREFUSED
		}
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		return &breaking{c, broken}, err
	}}
	defer transport.CloseIdleConnections()
	once := newOnce(transport, true)
	post := func() (*wire.Exchange, error) {
		ex := wire.NewExchange(t.Context(), nil, true)
		req, err := http.NewRequestWithContext(ex, http.MethodPost, web.URL, strings.NewReader("{}"))
		require.NoError(t, err)
		resp, err := once.RoundTrip(req)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, errors.Join(err, resp.Body.Close()))
		}
		return ex, err
	}
	_, err := post()
	require.NoError(t, err)
	broken.Store(true)
	ex, err := post()
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.Equal(t, mcpbridge.NotSent, ex.Explain(t.Context(), err, "").Class)
	require.Equal(t, 2, dials)
}

// breaking is a connection that takes nothing from the moment when it is broken.
type breaking struct {
	net.Conn
	broken *atomic.Bool
}

func (b *breaking) Write(data []byte) (int, error) {
	if b.broken.Load() {
		return 0, syscall.EPIPE
	}
	return b.Conn.Write(data)
}
