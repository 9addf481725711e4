package oauthresource

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMetadataIsAskedForAtNoOtherAddressThatIsNotPublic(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Error("asked:", r.URL) }))
	defer other.Close()
	asked := 0
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, other.URL+"/v1/agent/leave", http.StatusFound)
	}))
	defer own.Close()
	server, err := url.Parse(own.URL + "/mcp")
	require.NoError(t, err)
	found, _ := Find(t.Context(), &http.Client{}, server, nil)
	require.Nil(t, found)
	require.NotZero(t, asked)

	dial := publicTransport(http.DefaultTransport.(*http.Transport), server).DialContext
	_, err = dial(t.Context(), "tcp", other.Listener.Addr().String())
	require.ErrorContains(t, err, "not a public address")
	c, err := dial(t.Context(), "tcp", own.Listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, c.Close())

	public, err := url.Parse("https://mcp.example.com/mcp")
	require.NoError(t, err)
	for _, at := range candidates(public, http.Header{"Www-Authenticate": {
		`Bearer resource_metadata="http://127.0.0.1:8500/v1/agent/leave"`, `Bearer resource_metadata="https://169.254.169.254/x"`,
		`Bearer resource_metadata="https://localhost/x"`, `Bearer resource_metadata="https://[::ffff:10.0.0.1]/x"`,
	}}) {
		require.Equal(t, "mcp.example.com", at.Host)
	}
}
