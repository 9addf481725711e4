package bridge

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// H-C7: the server that redirected the call has not executed it, and the target has not
// processed it.
func TestCallThatIsRedirectedToNowhereWasNotSent(t *testing.T) {
	s := newScript()
	c := s.attach(t)
	s.answer("tools/call", says(307, "", "", "Location: /mcp/"), func(*http.Request) (*http.Response, error) {
		return nil, errors.New("http2: Transport: cannot retry err [stream error: stream ID 3; REFUSED_STREAM] after Request.Body was written")
	})
	e, _ := do(c)
	require.Equal(t, mcpbridge.NotSent, e.Class, "%v", e)
	require.False(t, e.Sent)
	require.NoError(t, c.Close(context.Background()))
}

// H-F1: the user and the password are also sent with the DELETE, and after a redirect.
func TestUserOfTheURLIsSentWithEveryRequest(t *testing.T) {
	for name, headers := range map[string]map[string]string{"": nil, "of the headers": {"Authorization": "Bearer hush-hush"}} {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			c := s.attach(t, func(srv *mcpbridge.Server, _ *mcpbridge.Resume) {
				srv.URL, srv.Headers = "http://me:my-password@test/mcp", headers
			})
			s.answer("tools/call", says(308, "", "", "Location: /mcp/"), nil)
			e, _ := do(c)
			require.Nil(t, e)
			require.NoError(t, c.Close(context.Background()))
			require.Len(t, s.requests, 5, "GET, ping, two of the call, DELETE")
			for _, req := range s.requests {
				user, password, _ := req.BasicAuth()
				if headers != nil {
					require.Equal(t, "Bearer hush-hush", req.Header.Get("Authorization"))
					continue
				}
				require.Equal(t, "me my-password", user+" "+password, "%s %s", req.Method, req.URL)
			}
		})
	}
}
