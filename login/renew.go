package login

import (
	"context"
	"crypto"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/internal/oauthresource"
	"github.com/mcpactor/mcpactor/internal/proof"
	"github.com/mcpactor/mcpactor/internal/visible"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// renew returns a record with a token that is not the refused one. One of all who share the store gets it, and the others find it there.
// The record is nil, or has no token, if a person has to log in. With a grant, w says what the MCP server asks for. If it is nil, that is
// what the server asked for the last time.
func (l *Login) renew(ctx context.Context, refused string, w *wanted) (*Record, error) {
	l.note(nil)
	claim, err := l.cfg.Store.Claim(ctx, l.cfg.ID)
	if err != nil {
		return nil, fmt.Errorf("the login cannot be claimed: %w", err)
	}
	defer claim.Release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ClaimTime) // a token that arrives when nobody waits for it would be lost
	defer cancel()
	data, err := claim.Load(ctx)
	kept, err := l.decoded(data, err)
	if err != nil {
		return nil, err
	}
	var renewed *Record
	switch decide(kept, refused, l.cfg.Grant != nil) {
	case use:
		l.note(kept)
		return kept, nil
	case refresh:
		// A refresh token may be valid once: it is used only if the store can keep the next one.
		if err = claim.Save(ctx, data); err != nil {
			return nil, fmt.Errorf("the login cannot be kept: %w", err)
		}
		renewed, err = l.refresh(ctx, kept)
	case grant:
		renewed, err = l.grant(ctx, kept, w)
	}
	if err != nil || renewed == nil {
		return nil, err
	}
	if err := l.save(ctx, claim, renewed); err != nil {
		return nil, err
	}
	return renewed, nil
}

// refresh returns the record with a new token, or without one if the authorization server has refused for good.
func (l *Login) refresh(ctx context.Context, kept *Record) (*Record, error) {
	renewed := *kept
	key, err := kept.signer()
	if err != nil {
		return nil, err
	}
	c := kept.Client
	client := Client{ID: c.ClientID, Secret: c.ClientSecret}
	to := newAuthority(l.cfg.HTTPClient, key, key != nil)
	to.TokenEndpoint = c.Endpoint.TokenURL
	if c.Endpoint.AuthStyle == oauth2.AuthStyleInParams {
		to.TokenEndpointAuthMethodsSupported = []string{"client_secret_post"}
	}
	token, err := client.request(ctx, to, url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {kept.Token.RefreshToken}, "resource": {kept.Resource},
	}, nil)
	switch {
	case hasEnded(err):
		token = nil
	case err != nil:
		return nil, &mcpbridge.Error{
			Class: mcpbridge.Unauthorized, Detail: "the token could not be refreshed: " + CauseOf(err),
			Remedy: "try again when the authorization server of " + hostOf(kept.Server, kept.Resource) + " works",
		}
	}
	renewed.Token = token
	return &renewed, nil
}

// grant returns a record with a token that the grant has got.
func (l *Login) grant(ctx context.Context, kept *Record, w *wanted) (renewed *Record, err error) {
	c := l.cfg.Grant.registered()
	if w == nil {
		// What is kept may be of an earlier configuration: the credentials go to the issuer of this one only.
		if kept == nil || kept.Issuer == "" || c.Issuer != "" && !oauthresource.SameIssuer(c.Issuer, kept.Issuer) {
			return nil, nil // the MCP server has not said yet what it asks for
		}
		w = &wanted{resource: kept.Resource, issuer: kept.Issuer, scopes: kept.scopes(), bound: len(kept.Key) > 0}
	}
	renewed = &Record{Resource: w.resource, Issuer: w.issuer, Given: true, Machine: true, Client: &oauth2.Config{ClientID: c.ID, Scopes: w.scopes}}
	var key crypto.Signer
	if kept != nil {
		if kept.Machine { // what somebody has kept of the client stays
			renewed.Server, renewed.Way, renewed.KeyFile, renewed.Client.ClientSecret = kept.Server, kept.Way, kept.KeyFile, kept.Client.ClientSecret
		}
		key, err = kept.signer()
	}
	if err == nil && key == nil {
		key, err = proof.NewKey()
	}
	if err != nil {
		return nil, err
	}
	w.web = l.cfg.HTTPClient
	to := newAuthority(w.web, key, w.bound)
	if renewed.Token, err = tokenOf(ctx, l.cfg.Grant, w, to); err != nil {
		return nil, refusedBy(w.issuer, l.cfg.Grant, err)
	}
	switch {
	case strings.EqualFold(renewed.Token.Type(), "DPoP"):
		renewed.signs = key
		renewed.Key, err = proof.FormatKey(key)
	case w.bound:
		err = &mcpbridge.Error{
			Class: mcpbridge.Unauthorized, Remedy: "ask those who run the server",
			Detail: "the server asks for a token that is bound to a key (DPoP), and " + visible.Detail(w.issuer) + " gives none",
		}
	}
	return renewed, err
}

// tokenOf asks the authorization server for a token by a grant.
func tokenOf(ctx context.Context, g Grant, w *wanted, to *authority) (*oauth2.Token, error) {
	if err := to.discover(ctx, w.issuer); err != nil {
		return nil, err
	}
	form, err := g.form(ctx, w, to)
	if err != nil {
		return nil, err
	}
	form.Set("resource", w.resource)
	return g.registered().request(ctx, to, form, w.scopes)
}
