package browser

import (
	"net/url"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/internal/oauthresource"
	"github.com/mcpactor/mcpactor/login"
)

func TestAnotherAuthorizationServerIsRecognised(t *testing.T) {
	server, err := url.Parse("https://s.example/mcp")
	require.NoError(t, err)
	record := func(issuer, tokenURL string) *login.Record {
		return &login.Record{Issuer: issuer, Client: &oauth2.Config{Endpoint: oauth2.Endpoint{TokenURL: tokenURL}}}
	}
	now := &oauthresource.Server{AuthServerMeta: oauthex.AuthServerMeta{Issuer: "https://a.example", TokenEndpoint: "https://a.example/t"}}
	for name, c := range map[string]struct {
		kept *login.Record
		now  *oauthresource.Server
		want bool
	}{
		"nobody has logged in":           {nil, now, false},
		"the same":                       {record("https://a.example", "https://a.example/t"), now, false},
		"another":                        {record("https://b.example", "https://b.example/t"), now, true},
		"an old file":                    {record("", "https://a.example/t"), now, false},
		"an old file, another":           {record("", "https://b.example/t"), now, true},
		"metadata are gone":              {record("https://a.example", "https://a.example/t"), nil, true},
		"metadata are gone, an old file": {record("", "https://a.example/t"), nil, true},
		"there were no metadata":         {record("", "https://s.example/token"), nil, false},
		"there were no metadata, and there are some now": {record("", "https://s.example/token"), now, true},
	} {
		require.Equal(t, c.want, hasMoved(c.kept, c.now, server), name)
	}
}
