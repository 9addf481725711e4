package outbound

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
