package bridge

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// H-E4: whatever parts of the URL a server repeats.
func TestSecretOfTheURLIsInNoErrorText(t *testing.T) {
	const secret = "sk-path-0123456789"
	for name, c := range map[string]struct{ url, body string }{
		"path":               {"http://test/s/" + secret + "/mcp", `{"message":"Route POST:/s/` + secret + `/mcp not found","statusCode":404}`},
		"part of the path":   {"http://test/s/" + secret + "/mcp", "no tenant " + secret},
		"escaped in between": {"http://test/s/" + secret + "%2Fmore", "no tenant " + secret + "/more, nor " + secret + "%2Fmore"},
		"the path's end":     {"http://test/aaaaaaaaaaaaaaaaaaaaaaaa", "no tenant aaaaaaaaaaaaaaaaaaaaaaaa"},
		"query":              {"http://test/mcp?k=" + secret, "no key " + secret},
		"escaped query":      {"http://test/mcp?k=a%20b" + secret, "POST /mcp?k=a%20b" + secret + " a+b" + secret + " a b" + secret},
		"password":           {"http://me:" + secret + "@test/mcp", "not " + secret},
		"user":               {"http://" + secret + "@test/mcp", "not " + secret},
		"basic":              {"http://me:pw-pw-pw@test/mcp", "not Basic bWU6cHctcHctcHc="},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				conn := s.attach(t, func(srv *mcpbridge.Server, _ *mcpbridge.Resume) { srv.URL = c.url })
				for _, status := range []int{400, 404, 500} {
					s.answer("tools/call", says(status, outbound.TypeJSON, c.body))
					e, _ := do(conn)
					for _, part := range []string{secret, "0123456789", "aaaaaaaa", "bWU6"} {
						require.NotContains(t, e.Error(), part)
					}
				}
				require.NoError(t, conn.Close(context.Background()))
			})
		})
	}
}

// H-E4: in redirects, and in endpoint events of HTTP+SSE.
func TestSecretOfAnotherURLOfTheServerIsInNoErrorText(t *testing.T) {
	s := newScript()
	c := s.attach(t)
	s.answer("tools/call", says(307, "", "", "Location: /s/k3y-0123456789/x?session=hush-hush"), says(400, "", "k3y-0123456789 hush-hush"))
	e, _ := do(c)
	require.Equal(t, "400 Bad Request: … …", e.Detail)
	require.NoError(t, c.Close(context.Background()))
}

// H-E4: a text that is cut, by a server or by mcpactor, does not end with a part of a
// secret.
func TestHalfASecretIsInNoErrorText(t *testing.T) {
	token := "eyJhbGciOi" + strings.Repeat("SECRETpart", 140) // as long as such tokens are
	echo := strings.Repeat(token, 60)
	for name, body := range map[string]string{
		"what is read of it": echo[:wire.MaxRefusal], "more than is read": echo, "a beginning": "bad token: " + token[:700], "the detail's end": strings.Repeat("x", redact.MaxDetail-20) + token,
	} {
		t.Run(name, func(t *testing.T) {
			require.NotContains(t, wire.Refusal{Status: 400, Body: []byte(body)}.Judge(token).Detail, "eyJhb")
			s := newScript()
			c := s.attach(t, func(srv *mcpbridge.Server, _ *mcpbridge.Resume) {
				srv.Headers = map[string]string{"Authorization": "Bearer " + token}
			})
			for _, kind := range []string{"text/plain", outbound.TypeJSON} {
				s.answer("tools/call", says(400, kind, body))
				e, _ := do(c)
				require.NotContains(t, e.Detail, "SECRET")
				require.NotContains(t, e.Detail, "eyJhb")
			}
			require.NoError(t, c.Close(context.Background()))
		})
	}
	require.Equal(t, "no …", redact.Clean("no "+token[:4], token))
	require.Equal(t, "no eyJ", redact.Clean("no "+token[:3], token), "which says nothing")
	require.Equal(t, "a …bc", redact.Clean("a "+token+"bc", token))
}

// H-E2: nothing is sent to the other origin, and the error does not repeat the event.
func TestEndpointEventThatNamesAnotherOriginIsRefused(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("it got %s %s", r.Method, r.URL)
		http.Error(w, "the internal answer", http.StatusInternalServerError)
	}))
	defer inside.Close()
	for name, endpoint := range map[string]string{
		"another port": inside.URL + "/latest/meta-data", "another scheme": "https://%s/x", "user": "http://%s@" + strings.TrimPrefix(inside.URL, "http://"),
		"malformed": "http://[hush-hush", "another event": "",
	} {
		t.Run(name, func(t *testing.T) {
			outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", outbound.TypeSSE)
				event := "event: endpoint\ndata: " + strings.ReplaceAll(endpoint, "%s", r.Host) + "\n\n"
				if endpoint == "" {
					event = "event: hush-hush\ndata: hush-hush\n\n"
				}
				fmt.Fprint(w, event)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}))
			defer outside.Close()
			b := New([]mcpbridge.Server{{Name: "x", URL: outside.URL, Transport: mcpbridge.TransportSSE}}, nil)
			defer b.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := b.Dial(ctx, dial.Request{Key: messages.Key{Server: "x"}, Down: func(*mcpbridge.Error) {}})
			require.Error(t, err)
			require.NotContains(t, err.Error(), "internal answer")
			require.NotContains(t, err.Error(), "hush")
			require.NoError(t, ctx.Err(), "it is said at once")
			switch name {
			case "malformed":
				require.ErrorContains(t, err, "the endpoint that it names is malformed")
			case "another event":
				require.ErrorContains(t, err, "the first event does not name an endpoint")
			default:
				e := mcpbridge.AsError(err)
				require.Equal(t, mcpbridge.Protocol, e.Class)
				require.False(t, e.Sent)
				require.Contains(t, e.Detail, outside.URL+" names http")
				require.Contains(t, e.Detail, "which is another origin: nothing is sent there")
			}
		})
	}
}
