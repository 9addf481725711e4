package mcpserver

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
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
	l, err := e.find("")
	require.NoError(t, err)
	e.done(l)
	found, err := e.find(l.id)
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
