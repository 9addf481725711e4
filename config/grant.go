package config

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/mcpactor/mcpactor/login"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// The grants of the field grant of an object oauth, by their names in a file.
const (
	clientCredentials = "client_credentials"
	workloadIdentity  = "workload_identity"
	enterprise        = "enterprise"
)

// client returns the fields of a client by their names in a file.
func client(c *login.Client) map[string]any {
	return map[string]any{"issuer": &c.Issuer, "clientId": &c.ID, "clientSecret": &c.Secret, "clientKeyFile": &c.KeyFile, "clientKeyId": &c.KeyID}
}

// grant reads the object oauth of a server that has a grant: it gets its tokens without a person. The credentials are nil after an error.
func (r *reader) grant(n *node, server *mcpbridge.Server) (kind string, credentials *mcpbridge.OAuthCredentials) {
	var (
		c, provider            login.Client
		tokenFile, idTokenFile string
		scopes                 []string
		at                     *node // provider
	)
	fields := client(&c)
	fields["grant"], fields["scopes"] = &kind, &scopes
	before := len(r.errs)
	r.into(n.field("grant"), &kind)
	switch kind {
	case clientCredentials:
	case workloadIdentity:
		fields["tokenFile"] = &tokenFile
	case enterprise:
		fields["idTokenFile"], fields["provider"] = &idTokenFile, &at
	default:
		if len(r.errs) == before {
			r.fail(n.field("grant"), "is %q: use %s, %s or %s", kind, clientCredentials, workloadIdentity, enterprise)
		}
		return kind, nil
	}
	r.strict(n, fields)
	switch {
	case server.URL == "":
		r.fail(n, "is for servers with a url")
	case hasCredentials(server):
		r.fail(n, "conflicts with the credentials in url or headers: leave one of them out")
	}
	if at != nil {
		r.strict(at, client(&provider))
	}
	for _, path := range []*string{&c.KeyFile, &provider.KeyFile, &tokenFile, &idTokenFile} {
		*path = inHome(*path)
	}
	both := func(in *node, c login.Client) {
		if c.Secret != "" && c.KeyFile != "" {
			r.fail(in.field("clientKeyFile"), "conflicts with clientSecret: give one of them")
		}
	}
	both(n, c)
	both(at, provider)
	need := func(in *node, name, value string) {
		field := in.field(name)
		switch {
		case value != "" || in == nil || in.kind != isObject:
		case field == nil:
			r.failField(in, name, "is missing")
		case len(r.errs) == before:
			r.fail(field, "is empty")
		}
	}
	if n.field("issuer") != nil { // an empty one would let the server choose
		need(n, "issuer", c.Issuer)
	}
	var g login.Grant
	switch kind {
	case clientCredentials:
		need(n, "clientId", c.ID)
		switch {
		case c.KeyFile != "":
		case n.field("clientSecret") == nil:
			r.failField(n, "clientSecret", "is missing, and so is clientKeyFile: set one")
		default:
			need(n, "clientSecret", c.Secret)
		}
		g = login.ClientCredentials{Client: c}
	case workloadIdentity:
		need(n, "tokenFile", tokenFile)
		g = login.WorkloadIdentity{TokenFile: tokenFile, Client: c}
	case enterprise:
		need(n, "clientId", c.ID)
		need(n, "idTokenFile", idTokenFile)
		if at == nil {
			r.failField(n, "provider", "is missing")
		}
		need(at, "issuer", provider.Issuer)
		issuer := provider.Issuer
		provider.Issuer = ""
		g = login.Enterprise{Provider: issuer, ProviderClient: provider, IDTokenFile: idTokenFile, Client: c}
	}
	if len(r.errs) > before {
		return kind, nil
	}
	if c.Issuer == "" && (c.Secret != "" || kind == workloadIdentity) {
		r.warn(n, "has no issuer: the authorization server that the server names first gets the secret or the token")
	}
	one, err := login.New(login.Config{Grant: g, Scopes: scopes})
	if err != nil {
		r.fail(n, "%w", err)
		return kind, nil
	}
	return kind, mcpbridge.OAuth(one)
}

// hasCredentials reports whether a server has credentials that a token would take the place of.
func hasCredentials(server *mcpbridge.Server) bool {
	for name := range server.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return true
		}
	}
	u, err := url.Parse(strings.ReplaceAll(server.URL, scopeMark, ""))
	return err == nil && u.User != nil
}
