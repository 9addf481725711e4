package login

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/mcpactor/mcpactor/internal/oauthresource"
	"github.com/mcpactor/mcpactor/internal/proof"
	"github.com/mcpactor/mcpactor/internal/visible"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// Authorize gets a token in place of the one with which the MCP server has refused a request. Without a grant, it takes one that
// somebody else has kept meanwhile, or uses the refresh token. The error wraps [ErrNeeded] if a person has to log in. If a server has
// refused, it is an [*mcpbridge.Error] with a remedy.
func (l *Login) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	kept, err := l.Kept(ctx)
	if err != nil {
		return err
	}
	refused := carriedBy(req)
	if decide(kept, refused, false) == use {
		l.note(kept)
		return nil
	}
	if l.cfg.Grant == nil {
		return l.withoutGrant(ctx, kept, req, resp)
	}
	w, err := l.asked(ctx, kept, req, resp)
	if err != nil {
		return err
	}
	_, err = l.renew(ctx, refused, w) // a grant has a token, or an error
	return err
}

// withoutGrant is the part of Authorize for a login without a grant, if nobody else has kept another token.
func (l *Login) withoutGrant(ctx context.Context, kept *Record, req *http.Request, resp *http.Response) error {
	why, refused := "nobody has logged in", carriedBy(req)
	switch {
	case resp.StatusCode == http.StatusForbidden:
		return l.needed("the login lacks the scopes " + strings.Join(namedScopes(resp), " "))
	case kept != nil && kept.Token != nil && kept.Issuer != "" && kept.Token.AccessToken == refused:
		// If the MCP server uses another authorization server now, a token of the former one would not help: the refresh token is not sent.
		found, _ := oauthresource.Find(ctx, l.cfg.HTTPClient, req.URL, resp.Header)
		if found != nil && len(found.AuthorizationServers) > 0 {
			if _, same := issuerOf(found.AuthorizationServers, "", kept.Issuer); !same {
				return l.needed("the server uses another authorization server now: " + found.AuthorizationServers[0])
			}
		}
		fallthrough
	case kept != nil:
		r, err := l.renew(ctx, refused, nil)
		if err != nil || r != nil && r.Token != nil {
			return err
		}
		why = "the login has expired"
	}
	return l.needed(why)
}

func (l *Login) needed(why string) error {
	return &mcpbridge.Error{Class: mcpbridge.Unauthorized, Detail: visible.Detail(why), Remedy: l.cfg.Remedy, Err: ErrNeeded}
}

// asked returns what an MCP server asks for with a refusal.
func (l *Login) asked(ctx context.Context, kept *Record, req *http.Request, resp *http.Response) (*wanted, error) {
	registered, before := l.cfg.Grant.registered().Issuer, ""
	if kept != nil {
		before = kept.Issuer
	}
	server := *req.URL
	server.User = nil // which is secret
	w := &wanted{resource: server.String(), issuer: registered, bound: proof.Asks(resp.Header)}
	found, others := oauthresource.Find(ctx, l.cfg.HTTPClient, req.URL, resp.Header)
	switch {
	case found != nil && len(found.AuthorizationServers) > 0:
		issuer, ok := issuerOf(found.AuthorizationServers, registered, before)
		if !ok {
			return nil, l.failed(fmt.Sprintf("the server uses the authorization server %s, and not %s, at which the client is registered", found.AuthorizationServers[0], issuer),
				"register the client there, and give its Issuer")
		}
		w.resource, w.issuer = found.Resource, issuer
		w.bound = w.bound || found.DPOPBoundAccessTokensRequired
		w.scopes = found.ScopesSupported
	case registered == "" && len(others) > 0:
		return nil, l.failed("the metadata of the server is for the resource "+strings.Join(others, ", ")+", and not for its URL", "ask those who run the server")
	case registered == "":
		return nil, l.failed("the server does not say which authorization server it uses (RFC 9728)", "give the Issuer of the client")
	}
	named := namedScopes(resp)
	switch {
	case resp.StatusCode == http.StatusForbidden: // the others stay
		w.scopes = union(kept.scopes(), named)
	case len(l.cfg.Scopes) > 0:
		w.scopes = l.cfg.Scopes
	case len(named) > 0:
		w.scopes = named
	}
	return w, nil
}

func (l *Login) failed(why, remedy string) error {
	return &mcpbridge.Error{Class: mcpbridge.Unauthorized, Detail: visible.Detail(why), Remedy: remedy}
}
