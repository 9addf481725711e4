package config

import (
	"fmt"
	"strings"

	"github.com/mcpactor/mcpactor/internal/loopback"
)

// OAuth says how to log in to a server at a URL by OAuth. Nothing in this module logs in by itself: it is for a program that does,
// such as mcpactor login.
type OAuth struct {
	// Off is true if the file says that the server has no login.
	Off bool
	// ClientID is that of a client that is registered with the authorization server. It may be empty.
	ClientID string
	// ClientSecret is the secret of the client, or empty. Do not show it.
	ClientSecret string
	// Redirect is the URL that is registered for the client, on this machine, or empty.
	Redirect string
	// Scopes are those to ask for in place of those that the server names, or none.
	Scopes []string
	// Grant is how the server gets its tokens without a person: client_credentials, workload_identity or enterprise. Then nobody logs
	// in, and the other fields are empty. It is empty if a person logs in.
	Grant string
}

// oauth reads the object oauth of a server, or auth of Cursor. Fields with addresses of the authorization server have no effect: a
// server names its authorization server itself.
func (r *reader) oauth(n *node) (o OAuth) {
	if n.kind == isBoolean && n.text == "false" { // opencode
		return OAuth{Off: true}
	}
	if n.kind != isObject {
		r.warn(n, "has no effect")
		return o
	}
	enabled, port := true, 0
	var scope, scopes *node
	targets := map[string]any{
		"clientId": &o.ClientID, "client_id": &o.ClientID, "CLIENT_ID": &o.ClientID,
		"clientSecret": &o.ClientSecret, "client_secret": &o.ClientSecret, "CLIENT_SECRET": &o.ClientSecret,
		"scope": &scope, "scopes": &scopes,
		"redirectUri": &o.Redirect, "redirect_uri": &o.Redirect,
		"enabled": &enabled,
	}
	if !r.opencode { // Claude Code
		targets["callbackPort"] = &port
	}
	r.fields(n, targets, func(field *node) { r.warn(field, "has no effect") })
	o.Off = !enabled
	for _, given := range []*node{scope, scopes} {
		switch {
		case given == nil:
		case given.kind == isList:
			var list []string
			r.into(given, &list)
			o.Scopes = append(o.Scopes, list...)
		default:
			var text string
			r.into(given, &text)
			o.Scopes = append(o.Scopes, strings.Fields(text)...)
		}
	}
	if o.Redirect != "" && !loopback.IsPort(o.Redirect) {
		r.warn(n, "has no effect: its redirect leads to another program, not to http://127.0.0.1:PORT/PATH")
		o.Redirect = ""
	}
	if port != 0 {
		o.Redirect = fmt.Sprintf("http://localhost:%d/callback", port)
	}
	return o
}
