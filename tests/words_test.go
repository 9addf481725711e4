package tests

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/debug"
	"github.com/mcpactor/mcpactor/supervisor/health"
)

// H-E12: what a server that is down says to one key reaches no other key, and nothing that is
// about the server as a whole. What is known of the server, its status, reaches all.
func TestWordsOfAServerReachTheKeyThatTheyWereSaidToOnly(t *testing.T) {
	for name, cfg := range map[string]supervisor.Config{"waiting": {}, "fail fast": {FailFast: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
				server := roundTripper(func(r *http.Request) (*http.Response, error) {
					body := fmt.Sprintf("the account of <%s> is overdrawn", r.Header.Get("X-User"))
					return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
				})
				var log strings.Builder
				cfg.Logger = zerolog.New(zerolog.SyncWriter(&log))
				cfg.Servers = []mcpbridge.Server{{Name: "s", URL: "http://local.invalid", InsecureCredentials: true, HTTPClient: &http.Client{Transport: server}, Auth: mcpbridge.AuthenticatorFunc(func(_ context.Context, k messages.Key) (mcpbridge.Credentials, error) {
					return userHeader(k.Scope), nil
				})}}
				h := start(t, cfg)
				scopes := []string{"alice", "bob", "carol", "dave", "erin"}
				heard := 0
				for range 3 {
					var sent []*sentCommand
					for _, scope := range scopes {
						sent = append(sent, h.send(call(scope, "count", within(300*time.Millisecond))))
					}
					for i, p := range sent {
						f := p.reply().(*messages.Failure)
						require.Contains(t, f.Error(), "503 Service Unavailable")
						for _, other := range scopes {
							if strings.Contains(f.Error(), "<"+other+">") {
								require.Equal(t, scopes[i], other, f)
								heard++
							}
						}
					}
				}
				require.Positive(t, heard, "a key whose dial was refused is told why")

				snap := h.inspect()
				require.Equal(t, messages.HealthDown, snap.Servers[0].Health)
				require.Contains(t, snap.Servers[0].Cause, "503 Service Unavailable")
				require.NotContains(t, snap.Servers[0].Cause, "overdrawn")
				for _, one := range snap.Sessions {
					for _, other := range scopes {
						require.False(t, other != one.Key.Scope && strings.Contains(one.Cause, "<"+other+">"), one)
					}
				}
				answer := httptest.NewRecorder()
				health.Ready(h.sup).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz?format=json", nil))
				require.NotContains(t, answer.Body.String(), "overdrawn")
				page := debug.New(h.sup, debug.Config{Hosts: []string{"example.com"}})
				defer page.Close()
				answer = httptest.NewRecorder()
				page.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/?server=s&q=nobody", nil))
				require.Equal(t, http.StatusOK, answer.Code)
				require.Contains(t, answer.Body.String(), "503 Service Unavailable")
				require.NotContains(t, answer.Body.String(), "overdrawn")
				h.stopAndVerify()
				require.Contains(t, log.String(), "server is down")
				for line := range strings.Lines(log.String()) {
					if strings.Contains(line, "overdrawn") {
						require.Contains(t, line, `"scope":"`, "it is about one key: %s", line)
					}
				}
			})
		})
	}
}

// userHeader is the name of a user as credentials.
type userHeader string

func (u userHeader) Headers(context.Context) (http.Header, error) {
	return http.Header{"X-User": {string(u)}}, nil
}
func (userHeader) Refresh(context.Context, *http.Request, *http.Response) error { return nil }
