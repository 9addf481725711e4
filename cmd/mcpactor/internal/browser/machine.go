package browser

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/mcpactor/mcpactor/internal/oauthresource"
	"github.com/mcpactor/mcpactor/login"
)

// Machine is the login of a client with credentials of its own, for which nobody needs a browser. What has worked is kept in place of
// the login of a person: all processes of the user then get tokens by it.
type Machine struct {
	*login.Login // of this process
	server       string
	client       login.Client
	kept         *login.Login // of all processes
	worked       atomic.Bool
}

var _ auth.OAuthHandler = (*Machine)(nil)

// NewMachine returns the login of a client at the server with a URL. Scopes are asked for in place of those that the server names.
func NewMachine(server string, client login.Client, scopes []string) (*Machine, error) {
	kept, err := New(server, Options{})
	if err != nil {
		return nil, err
	}
	// If the client has logged in before, an authorization server that the MCP server names now gets no secret of it.
	if r, _ := kept.kept.Kept(context.Background()); client.Issuer == "" && r != nil && r.Client.ClientID == client.ID {
		client.Issuer = r.Issuer
	}
	own, err := login.New(login.Config{Grant: login.ClientCredentials{Client: client}, Scopes: scopes})
	return &Machine{Login: own, server: server, client: client, kept: kept.kept}, err
}

// Worked reports whether the client has logged in.
func (m *Machine) Worked() bool { return m.worked.Load() }

// Authorize gets a token, and keeps the login.
func (m *Machine) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	if err := m.Login.Authorize(ctx, req, resp); err != nil {
		return err
	}
	got, err := m.Kept(ctx)
	if err != nil {
		return err
	}
	kept := *got
	kept.Server, kept.Way, kept.Machine, kept.KeyFile = m.server, byCredentials, true, m.client.KeyFile
	client := *got.Client
	client.ClientSecret = m.client.Secret
	kept.Client = &client
	if err := m.kept.Keep(ctx, &kept); err != nil {
		return err
	}
	m.worked.Store(true)
	return nil
}

// Offer logs in at a server that has asked for no login so far, and reports whether the server has one.
func (m *Machine) Offer(ctx context.Context) (offered bool, err error) {
	return offer(ctx, m, m.server)
}

// offer has a handler authorize at a server that has not asked for it, if the server has metadata.
func offer(ctx context.Context, handler auth.OAuthHandler, server string) (offered bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server, nil)
	if err != nil {
		return false, err
	}
	if found, _ := oauthresource.Find(ctx, oauthresource.Web, req.URL, nil); found == nil {
		return false, nil
	}
	return true, handler.Authorize(ctx, req, &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody})
}
