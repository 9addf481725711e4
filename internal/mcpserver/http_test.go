package mcpserver

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

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
