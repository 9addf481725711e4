package browser

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcpactor/mcpactor/internal/oauthresource"
	"github.com/mcpactor/mcpactor/internal/visible"
	"github.com/mcpactor/mcpactor/login"
)

// discovered is what the metadata of an MCP server and that of its authorization server say. Either may be nil.
type discovered struct {
	resource *oauthresource.Metadata
	server   *oauthresource.Server
}

// discover looks where the handler of the SDK looks: a server without metadata may be its own authorization server, as in 2025-03-26.
func discover(ctx context.Context, server *url.URL, refusal http.Header) (d discovered, err error) {
	d.resource, _ = oauthresource.Find(ctx, oauthresource.Web, server, refusal)
	if d.resource == nil {
		d.server, _ = oauthresource.AuthorizationServer(ctx, oauthresource.Web, server.Scheme+"://"+server.Host)
		return d, nil
	}
	if len(d.resource.AuthorizationServers) == 0 {
		return d, errors.New("the metadata of the server names no authorization server")
	}
	d.server, err = oauthresource.AuthorizationServer(ctx, oauthresource.Web, d.resource.AuthorizationServers[0])
	if errors.Is(err, oauthresource.ErrNoServer) {
		err = nil
	}
	return d, err
}

// hasMoved reports whether a login was made at another authorization server than that of now, which gets nothing of it. now is nil if
// that has no metadata: then it is at the origin of the MCP server.
func hasMoved(kept *login.Record, now *oauthresource.Server, server *url.URL) bool {
	switch {
	case kept == nil:
		return false
	case now == nil:
		return kept.Issuer != "" || kept.Client.Endpoint.TokenURL != server.Scheme+"://"+server.Host+"/token"
	case kept.Issuer == "": // as in files of before
		return kept.Client.Endpoint.TokenURL != now.TokenEndpoint
	}
	return kept.Issuer != now.Issuer
}

// Offered is how programs can be known to the authorization server of an MCP server.
type Offered struct {
	Issuer       string `json:"issuer"`
	Documents    bool   `json:"clientDocuments"`
	Registration bool   `json:"registration"`
}

// Offers returns what the authorization server of the MCP server at a URL offers, or nil if it has no metadata. It may block until
// ctx ends.
func Offers(ctx context.Context, server string) *Offered {
	u, err := url.Parse(server)
	if err != nil {
		return nil
	}
	found, err := discover(ctx, u, nil)
	if err != nil || found.server == nil {
		return nil
	}
	s := found.server
	return &Offered{Issuer: s.Issuer, Documents: s.ClientIDMetadataDocumentSupported, Registration: s.RegistrationEndpoint != ""}
}

// String says what is offered, in words. Every authorization server takes a client that was registered there.
func (o *Offered) String() string {
	ways := []string{"clients that you register"}
	if o.Documents {
		ways = append(ways, "client documents")
	}
	if o.Registration {
		ways = append(ways, "programs that register themselves")
	}
	return fmt.Sprintf("the authorization server %s takes %s", visible.Detail(o.Issuer), strings.Join(ways, ", "))
}
