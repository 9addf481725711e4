package outbound

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/bridgetest"
)

func TestCookiesAreBounded(t *testing.T) {
	s := out(t, mcpbridge.Server{}, bridgetest.Answering(func(req *http.Request) (*http.Response, error) {
		resp := Respond(req, 200, "", nil)
		for i := range 2 * maxCookies {
			resp.Header.Add("Set-Cookie", fmt.Sprintf("c%d=x", i))
		}
		resp.Header.Add("Set-Cookie", "c1="+strings.Repeat("x", maxCookie))
		resp.Header.Add("Set-Cookie", "c1=y")
		resp.Header.Add("Set-Cookie", "not a cookie")
		return resp, nil
	}))
	for range 2 {
		_, err := s.Send(httptest.NewRequest("GET", "http://test/mcp", nil))
		require.NoError(t, err)
	}
	require.Len(t, strings.Split(s.cookies.record(), "; "), maxCookies)
	require.Contains(t, s.cookies.record(), "c1=y")
}

func TestCookiesCanBeTurnedOffOrKeptElsewhere(t *testing.T) {
	reply := bridgetest.Says(200, "", "", "Set-Cookie: pod=first-pod")
	send := func(srv mcpbridge.Server) (second string, s *Sender) {
		s = out(t, srv, bridgetest.Answering(func(req *http.Request) (*http.Response, error) {
			second = req.Header.Get("Cookie")
			return reply(req)
		}))
		s.cookies.restore("old=cookie")
		for range 2 {
			_, err := s.Send(httptest.NewRequest("GET", "http://test/mcp", nil))
			require.NoError(t, err)
		}
		return second, s
	}
	carried, s := send(mcpbridge.Server{NoCookies: true})
	require.Empty(t, carried)
	require.Empty(t, s.cookies.record())

	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	carried, s = send(mcpbridge.Server{HTTPClient: &http.Client{Jar: jar}})
	require.Equal(t, "pod=first-pod", carried)
	require.Empty(t, s.cookies.record(), "it is not ours to keep")
	require.Len(t, jar.Cookies(&url.URL{Scheme: "http", Host: "test"}), 1)
	require.Contains(t, s.Secrets(), "first-pod")

	carried, _ = send(mcpbridge.Server{})
	require.Equal(t, "old=cookie; pod=first-pod", carried)
}
