package mcpbridge

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// H-G: credentials that were not made by OAuth are refused, and do not block.
func TestCredentialsWithoutAHandlerSaySo(t *testing.T) {
	for _, o := range []*OAuthCredentials{nil, {}, OAuth(nil)} {
		_, err := o.Headers(t.Context())
		require.ErrorIs(t, err, errNotMade)
		require.ErrorIs(t, o.Refresh(t.Context(), nil, nil), errNotMade)
		require.ErrorIs(t, (&Server{Name: "s", URL: "https://a", Auth: o}).Validate(), errNotMade)
	}
}
