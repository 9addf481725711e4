package mcpbridge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

func TestBearerSendsTheTokenOfTheKeyUntilItIsRefused(t *testing.T) {
	asked, failure := []string{}, error(nil)
	auth := Bearer(func(_ context.Context, key messages.Key, refused string) (string, error) {
		asked = append(asked, key.Scope+" "+refused)
		if key.Scope == "nobody" {
			return "", nil
		}
		return fmt.Sprint(key.Scope, len(asked)), failure
	})
	c, err := auth.Credentials(t.Context(), messages.Key{Server: "s", Scope: "ann"})
	require.NoError(t, err)
	sends := func(token string) {
		t.Helper()
		headers, err := c.Headers(t.Context())
		require.NoError(t, err)
		require.Equal(t, http.Header{"Authorization": {"Bearer " + token}}, headers)
	}
	sends("ann1")
	sends("ann1")
	require.NoError(t, c.Refresh(t.Context(), nil, nil))
	sends("ann2")
	failure = errors.New("the vault is closed")
	require.ErrorIs(t, c.Refresh(t.Context(), nil, nil), failure)
	sends("ann2")
	require.Equal(t, []string{"ann ", "ann ann1", "ann ann2"}, asked)

	_, err = auth.Credentials(t.Context(), messages.Key{Server: "s", Scope: "bob"})
	require.ErrorIs(t, err, failure)
	_, err = auth.Credentials(t.Context(), messages.Key{Server: "s", Scope: "nobody"})
	require.EqualError(t, err, "the token is empty")

	one, two := Server{Name: "s", URL: "https://x", Auth: auth}, Server{Name: "s", URL: "https://x", Auth: auth}
	require.True(t, one.Same(&two), "a reload keeps the sessions")
}
