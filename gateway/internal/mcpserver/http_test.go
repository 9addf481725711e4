package mcpserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Pages beside the endpoint ask for its token. A browser asks a person for it, as for a password.
func TestPagesBesideTheEndpointAskForTheToken(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "secret") })
	for _, c := range []struct {
		token string
		given func(*http.Request)
		want  int
	}{
		{"", func(*http.Request) {}, http.StatusOK},
		{"hush", func(*http.Request) {}, http.StatusUnauthorized},
		{"hush", func(r *http.Request) { r.SetBasicAuth("hush", "") }, http.StatusUnauthorized},
		{"hush", func(r *http.Request) { r.SetBasicAuth("", "hush ") }, http.StatusUnauthorized},
		{"hush", func(r *http.Request) { r.SetBasicAuth("", "hush") }, http.StatusOK},
		{"hush", func(r *http.Request) { r.Header.Set("Authorization", "Bearer hush") }, http.StatusOK},
	} {
		r := httptest.NewRequest(http.MethodGet, "/debug/mcp/", nil)
		c.given(r)
		w := httptest.NewRecorder()
		(&HTTP{Token: c.token}).Guard(page).ServeHTTP(w, r)
		require.Equal(t, c.want, w.Code)
		if c.want != http.StatusOK {
			require.Regexp(t, "^Basic realm=", w.Header().Get("WWW-Authenticate"), "browsers ask")
			require.NotContains(t, w.Body.String(), "secret")
		}
	}
}

// A client that cannot resume a stream gets an answer to each open request when the process ends.
func TestOpenRequestsAreAnsweredAtTheEndOfTheProcess(t *testing.T) {
	for range 100 {
		waits := make(chan struct{}, 2)
		e := &HTTP{Accept: func(*Client) Handler { return &plain{waits} }}
		post := func(id, body string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(body))
			r.Header.Set(headerSession, id)
			r.Header.Set(headerRevision, "2025-03-26")
			w := httptest.NewRecorder()
			e.ServeHTTP(w, r)
			return w
		}
		id := post("", `{"jsonrpc":"2.0","id":0,"method":"initialize"}`).Header().Get(headerSession)
		said := make(chan string)
		go func() {
			said <- post(id, `[{"jsonrpc":"2.0","id":1,"method":"wait"},{"jsonrpc":"2.0","id":2,"method":"wait"}]`).Body.String()
		}()
		<-waits
		<-waits
		e.Close()
		text := <-said
		require.Equal(t, 2, strings.Count(text, textLost), text)
		require.Contains(t, text, `"id":1,"error"`)
		require.Contains(t, text, `"id":2,"error"`)
	}
}

// A request that has found its client keeps it, although the client has been silent for too long just then.
func TestClientThatIsFoundIsNotIdle(t *testing.T) {
	e := &HTTP{Accept: acceptPlain}
	defer e.Close()
	l, err := e.find("id", func(*Client) {})
	require.NoError(t, err)
	e.done(l)
	found, err := e.find(l.id, nil)
	require.NoError(t, err)
	require.Same(t, l, found)
	e.end(l, false)
	require.NoError(t, l.c.Context.Err())
	e.done(l)
	e.end(l, false)
	require.Error(t, l.c.Context.Err())
	require.Empty(t, e.links)
}

// leaver is a handler whose client takes a second to leave.
type leaver struct {
	plain
	left func(forGood bool)
}

func (l *leaver) Left(forGood bool) {
	time.Sleep(time.Second)
	l.left(forGood)
}

// A client that returns while it leaves is the same client afterwards, unless it has left for good. After Close nobody is told that
// a session is unknown.
func TestClientThatIsLeavingReturnsAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known, served := map[string]bool{}, 0
		accept := func(c *Client) Handler {
			served++
			known[c.ID] = true
			return &leaver{left: func(forGood bool) { known[c.ID] = !forGood }}
		}
		e := &HTTP{Accept: accept, Return: func(c *Client) (Handler, error) {
			if !known[c.ID] {
				return nil, nil
			}
			return accept(c), nil
		}}
		var last atomic.Int32
		post := func(id, method string) *httptest.ResponseRecorder {
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q}`, last.Add(1), method)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(body))
			r.Header.Set(headerSession, id)
			w := httptest.NewRecorder()
			e.ServeHTTP(w, r)
			return w
		}
		id := post("", "initialize").Header().Get(headerSession)
		require.Equal(t, http.StatusOK, post(id, "ping").Code)
		require.Equal(t, 1, served)
		time.Sleep(idleTime + time.Second/2)
		for range 2 {
			go post(id, "ping")
		}
		require.Equal(t, http.StatusOK, post(id, "ping").Code)
		require.Equal(t, 2, served)

		leave := httptest.NewRequestWithContext(t.Context(), http.MethodDelete, "http://127.0.0.1/mcp", nil)
		leave.Header.Set(headerSession, id)
		go e.ServeHTTP(httptest.NewRecorder(), leave)
		time.Sleep(time.Second / 2)
		require.Equal(t, http.StatusNotFound, post(id, "ping").Code)
		require.Empty(t, e.links)

		other := post("", "initialize").Header().Get(headerSession)
		e.Close()
		for _, id := range []string{other, "unknown", ""} {
			require.Equal(t, http.StatusServiceUnavailable, post(id, "initialize").Code)
		}
	})
}

// Other names and pages of other sites are refused, unless they are allowed. An IP address is nobody else's name.
func TestHostsAndOriginsThatMaySendRequests(t *testing.T) {
	for _, c := range []struct {
		host, origin string
		want         bool
	}{
		{"localhost:8090", "", true},
		{"[::1]:8090", "", true},
		{"10.1.2.3:8090", "", true},
		{"[fd00::1]:8090", "", true},
		{"mcp.example.com", "", true},
		{"MCP.example.com:443", "", true},
		{"evil.example", "", false},
		{"mcp.example.com.evil.example", "", false},
		{"127.0.0.1.evil.example", "", false},
		{"", "", false},
		{"localhost:8090", "http://localhost:8090", true},
		{"localhost:8090", "http://localhost:8091", false},
		{"localhost:8090", "https://app.example.com", true},
		{"localhost:8090", "https://APP.example.com", true},
		{"localhost:8090", "http://app.example.com", false},
		{"localhost:8090", "https://app.example.com:444", false},
		{"localhost:8090", "https://app.example.com.evil.example", false},
		{"localhost:8090", "null", false},
		{"evil.example", "http://evil.example", false},
		{"evil.example", "https://app.example.com", false},
	} {
		e := &HTTP{Accept: acceptPlain, Hosts: []string{"mcp.example.com"}, Origins: []string{"https://app.example.com", "vscode-webview://a"}}
		r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"initialize"}`))
		r.Host = c.host
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		e.Close()
		if c.want {
			require.Equal(t, http.StatusOK, w.Code, "%v", c)
		} else {
			require.Equal(t, http.StatusForbidden, w.Code, "%v", c)
			require.Contains(t, w.Body.String(), "--allow-")
		}
	}
}

// A page of an allowed origin may send what a client sends, and read what a client reads: its browser asks first, without the token. No
// other page learns anything.
func TestBrowsersAreToldWhichPagesMaySendRequests(t *testing.T) {
	e := &HTTP{Token: "hush", Accept: acceptPlain, Origins: []string{"https://app.example.com"}}
	defer e.Close()
	send := func(method, origin string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://localhost/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"initialize"}`))
		r.Header.Set("Origin", origin)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		return w
	}
	ask := []string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,mcp-session-id"}
	w := send(http.MethodOptions, "https://app.example.com", ask...)
	require.Equal(t, http.StatusNoContent, w.Code)
	require.Equal(t, "https://app.example.com", w.Header().Get("Access-Control-Allow-Origin"))
	require.Equal(t, "GET, POST, DELETE", w.Header().Get("Access-Control-Allow-Methods"))
	require.Equal(t, "authorization,mcp-session-id", w.Header().Get("Access-Control-Allow-Headers"))
	require.Empty(t, w.Header().Get("Access-Control-Allow-Credentials"), "the page itself must have the token")
	require.Equal(t, "Origin", w.Header().Get("Vary"))

	w = send(http.MethodPost, "https://app.example.com", "Authorization", "Bearer hush")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "https://app.example.com", w.Header().Get("Access-Control-Allow-Origin"))
	require.Contains(t, w.Header().Get("Access-Control-Expose-Headers"), headerSession)
	require.NotEmpty(t, w.Header().Get(headerSession))
	require.Equal(t, http.StatusUnauthorized, send(http.MethodPost, "https://app.example.com").Code)
	require.Equal(t, http.StatusUnauthorized, send(http.MethodOptions, "https://app.example.com").Code, "this asks nothing")

	for _, method := range []string{http.MethodOptions, http.MethodPost, http.MethodGet} {
		w = send(method, "https://evil.example", append(ask, "Authorization", "Bearer hush")...)
		require.Equal(t, http.StatusForbidden, w.Code)
		for name := range w.Header() {
			require.False(t, strings.HasPrefix(name, "Access-Control-"), name)
		}
	}
}

func TestCertificateCountsAsTheToken(t *testing.T) {
	verified := &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{}}}
	for _, c := range []struct {
		http  *HTTP
		tls   *tls.ConnectionState
		token string
		want  bool
	}{
		{&HTTP{Certificates: true}, verified, "", true},
		{&HTTP{Certificates: true}, &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}, "", false},
		{&HTTP{Certificates: true}, nil, "", false},
		{&HTTP{Certificates: true, Token: "hush"}, verified, "", true},
		{&HTTP{Certificates: true, Token: "hush"}, &tls.ConnectionState{}, "hush", true},
		{&HTTP{Certificates: true, Token: "hush"}, &tls.ConnectionState{}, "", false},
		{&HTTP{Token: "hush"}, verified, "", false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/mcp", nil)
		r.TLS = c.tls
		r.Header.Set("Authorization", "Bearer "+c.token)
		require.Equal(t, c.want, c.http.isAllowed(r))
	}
}

// guess sends a token from an address, and returns the status and the time that the answer took.
func guess(e *HTTP, address, token string) (status int, took time.Duration) {
	r := httptest.NewRequest(http.MethodGet, "http://localhost/mcp", nil)
	r.RemoteAddr = address
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	began := time.Now()
	w := httptest.NewRecorder()
	e.Guard(http.NotFoundHandler()).ServeHTTP(w, r)
	return w.Code, time.Since(began)
}

func TestWrongTokensAreAnsweredSlowlyAndTheRightOneIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &HTTP{Token: "hush"}
		began := time.Now()
		for i := range addressBurst + 20 {
			status, took := guess(e, "192.0.2.1:1000", "wrong")
			require.Equal(t, http.StatusUnauthorized, status)
			require.Equal(t, i >= addressBurst, took > 0, "a person may mistype it")
			status, took = guess(e, "192.0.2.1:1000", "hush")
			require.Equal(t, http.StatusNotFound, status)
			require.Zero(t, took)
			_, took = guess(e, "192.0.2.1:1000", "")
			require.Zero(t, took, "who sends none does not guess")
		}
		require.Equal(t, 20*time.Second, time.Since(began))
		_, took := guess(e, "192.0.2.2:1000", "wrong")
		require.Zero(t, took, "another machine")
		_, took = guess(e, "[2001:db8::1]:1000", "wrong")
		require.Zero(t, took)
		time.Sleep(time.Hour)
		_, took = guess(e, "192.0.2.1:1000", "wrong")
		require.Zero(t, took)
	})
}

// One machine has more IPv6 addresses than can be counted, and an attacker many machines.
func TestWrongTokensFromManyAddressesAreSlowTogether(t *testing.T) {
	for name, address := range map[string]string{"of one machine": "[2001:db8::%x]:1", "of many machines": "[2001:db8:%x::1]:1"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &HTTP{Token: "hush"}
				began := time.Now()
				for i := range 2000 {
					guess(e, fmt.Sprintf(address, i), "wrong")
				}
				require.GreaterOrEqual(t, time.Since(began), (2000-allBurst)*time.Second/allRate)
				require.LessOrEqual(t, e.wrong.addresses.Len(), maxAddresses)
				_, took := guess(e, fmt.Sprintf(address, 1), "hush")
				require.Zero(t, took)
			})
		})
	}
}

func TestRequestsThatWaitWithAWrongTokenAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &HTTP{Token: "hush"}
		var all sync.WaitGroup
		statuses := map[int]int{}
		var mu sync.Mutex
		for range addressBurst + maxDelayed + 50 {
			all.Go(func() {
				status, took := guess(e, "192.0.2.1:1000", "wrong")
				mu.Lock()
				defer mu.Unlock()
				statuses[status]++
				require.LessOrEqual(t, took, maxDelay)
			})
		}
		synctest.Wait()
		status, took := guess(e, "192.0.2.1:1000", "hush")
		require.Equal(t, http.StatusNotFound, status)
		require.Zero(t, took)
		all.Wait()
		require.Equal(t, map[int]int{http.StatusUnauthorized: addressBurst + maxDelayed, http.StatusTooManyRequests: 50}, statuses)
		require.Zero(t, e.wrong.delayed)

		// Who does not wait for the answer makes room.
		ctx, leave := context.WithCancel(t.Context())
		for range maxDelayed {
			all.Go(func() {
				r := httptest.NewRequest(http.MethodGet, "http://localhost/mcp", nil).WithContext(ctx)
				r.SetBasicAuth("", "wrong")
				e.ServeHTTP(httptest.NewRecorder(), r)
			})
		}
		synctest.Wait()
		leave()
		all.Wait()
		require.Zero(t, e.wrong.delayed)
	})
}
