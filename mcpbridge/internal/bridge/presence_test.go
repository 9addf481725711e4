package bridge

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/messages"
)

// A dial that fails says whether that is the server's fault, or the key's.
func TestFailedDialShowsWhetherTheServerIsThere(t *testing.T) {
	says := func(status int, body string) *mcpbridge.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", outbound.TypeJSON)
			w.WriteHeader(status)
			w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return &mcpbridge.Server{URL: s.URL}
	}
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, nil, 0o600))
	for name, c := range map[string]struct {
		srv  *mcpbridge.Server
		want mcpbridge.Presence
	}{
		"nobody listens":    {&mcpbridge.Server{URL: "http://127.0.0.1:1"}, mcpbridge.Absent},
		"502":               {says(502, ""), mcpbridge.Absent},
		"503":               {says(503, `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}`), mcpbridge.Absent},
		"504":               {says(504, ""), mcpbridge.Absent},
		"500":               {says(500, ""), mcpbridge.Strange},
		"404":               {says(404, "not found"), mcpbridge.Strange},
		"302":               {says(302, ""), mcpbridge.Strange},
		"a page":            {says(200, "<html>"), mcpbridge.Strange},
		"401":               {says(401, ""), mcpbridge.Present},
		"403":               {says(403, ""), mcpbridge.Present},
		"429":               {says(429, ""), mcpbridge.Present},
		"an error":          {says(400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`), mcpbridge.Present},
		"no such command":   {&mcpbridge.Server{Command: "no-such-command"}, mcpbridge.Strange},
		"no program":        {&mcpbridge.Server{Command: text}, mcpbridge.Strange},
		"exits at once":     {server("die"), mcpbridge.Strange},
		"no such host":      {&mcpbridge.Server{URL: "http://nowhere.invalid"}, mcpbridge.Strange},
		"has no connection": {&mcpbridge.Server{URL: "http://127.0.0.1:1"}, mcpbridge.Absent},
	} {
		t.Run(name, func(t *testing.T) {
			c.srv.Name, c.srv.ProtocolVersion = "test", protocolLegacy
			_, e := dialTest(t, c.srv)
			require.NotNil(t, e)
			require.Equal(t, c.want, e.Server, "%v", e)
		})
	}
}

// Answered comes once, before the dial has ended, and not from a server that is not
// there.
func TestAnsweredComesWhenTheHandshakeIsAnswered(t *testing.T) {
	b := New([]mcpbridge.Server{{Name: "s", InMemory: mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)}, {Name: "nobody", URL: "http://127.0.0.1:1"}}, nil)
	defer b.Close()
	var answered atomic.Int64
	req := dial.Request{Key: messages.Key{Server: "s"}, Answered: func() { answered.Add(1) }, Down: func(*mcpbridge.Error) {}}
	c, err := b.Dial(t.Context(), req)
	require.NoError(t, err)
	require.EqualValues(t, 1, answered.Load())
	require.NoError(t, c.Close(context.Background()))
	req.Key.Server = "nobody"
	_, err = b.Dial(t.Context(), req)
	require.Error(t, err)
	require.EqualValues(t, 1, answered.Load())
}

// H-C2: nothing is sent with the credentials that were refused.
func TestRefusedCredentialsAreNotSentAgain(t *testing.T) {
	var requests atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(401)
	}))
	defer s.Close()
	var token string
	var missing error
	creds := func(context.Context, messages.Key) (mcpbridge.Credentials, error) {
		return tokenFunc(func() (string, error) { return token, nil }), missing
	}
	b := New([]mcpbridge.Server{{Name: "s", URL: s.URL, Auth: mcpbridge.AuthenticatorFunc(creds), ProtocolVersion: protocolLegacy}}, nil)
	defer b.Close()
	req := dial.Request{Key: messages.Key{Server: "s"}, Down: func(*mcpbridge.Error) {}}
	dial := func() *mcpbridge.Error {
		_, err := b.Dial(t.Context(), req)
		e := dial.AsError(err)
		require.Equal(t, mcpbridge.Unauthorized, e.Class)
		if req.Refused != nil && errors.Is(err, req.Refused) {
			return req.Refused
		}
		return e
	}
	missing = errors.New("not logged in")
	req.Refused = dial()
	require.Same(t, req.Refused, dial())
	require.Zero(t, requests.Load())
	missing = nil
	for _, token = range []string{"one", "two", "one"} {
		before := requests.Load()
		refused := dial()
		require.NotSame(t, req.Refused, refused, token)
		require.Greater(t, requests.Load(), before)
		req.Refused, before = refused, requests.Load()
		require.Same(t, req.Refused, dial())
		require.Equal(t, before, requests.Load(), token)
	}
}

type tokenFunc func() (string, error)

func (b tokenFunc) Headers(context.Context) (http.Header, error) {
	token, err := b()
	return http.Header{"Authorization": {"Bearer " + token}}, err
}

func (tokenFunc) Refresh(context.Context, *http.Request, *http.Response) error {
	return errors.New("there is nobody to ask")
}
