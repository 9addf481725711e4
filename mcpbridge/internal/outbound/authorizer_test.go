package outbound

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/bridgetest"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// token is credentials that can be refreshed as often as one likes.
type token struct{ refreshes int }

func (t *token) Headers(context.Context) (http.Header, error) {
	return http.Header{"Authorization": {"Bearer old"}}, nil
}

func (t *token) Refresh(context.Context, *http.Request, *http.Response) error {
	t.refreshes++
	return nil
}

// signed returns the sender of a session with credentials.
func signed(t *testing.T, credentials mcpbridge.Credentials) *Sender {
	client := NewClient(&mcpbridge.Server{URL: "http://test"})
	return NewSender(client, &transport.Session{Cut: t.Context(), Credentials: credentials})
}

func TestRequestWhoseBodyIsGoneIsNotRepeated(t *testing.T) {
	p := new(token)
	a := signed(t, p)
	a.client.transport = bridgetest.Says(401, "", "who are you?", `Www-Authenticate: Bearer`)
	req := httptest.NewRequest(http.MethodPost, "http://test", strings.NewReader("{}"))
	resp, err := a.Send(req)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "who are you?", string(body))
	require.Zero(t, p.refreshes)
}

// A refusal that was looked into is given back whole, however long it is, and with
// the error at its end.
func TestBodyOfARefusalStaysIntact(t *testing.T) {
	p := new(token)
	a := signed(t, p)
	for _, size := range []int{0, 10, wire.MaxRefusal, wire.MaxRefusal + 1, 3 * wire.MaxRefusal} {
		for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
			text := strings.Repeat("session not found ", size/18+1)[:size]
			a.client.transport = bridgetest.Then(end, bridgetest.Says(401, "", text))
			req := httptest.NewRequest(http.MethodGet, "http://test", nil)
			req.Header.Set(HeaderSession, bridgetest.SessionID)
			resp, err := a.Send(req)
			if size < 18 { // it does not say so
				require.NoError(t, err)
				require.Equal(t, 401, resp.StatusCode)
				continue
			}
			require.NoError(t, err)
			got, err := io.ReadAll(resp.Body)
			require.Equal(t, text, string(got))
			require.Equal(t, errors.Is(end, io.EOF), err == nil)
		}
	}
}

// What is sent without credentials costs no more than before.
func TestServerWithoutHeadersCostsNothing(t *testing.T) {
	resp := new(http.Response)
	a := out(t, mcpbridge.Server{}, bridgetest.Answering(func(*http.Request) (*http.Response, error) { return resp, nil }))
	req := httptest.NewRequest(http.MethodPost, "http://test/mcp", nil)
	require.Zero(t, testing.AllocsPerRun(100, func() { a.Send(req) }))
}
