// Package listclass finds the keys that share the lists of a server.
package listclass

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/internal/identity"
	"github.com/mcpactor/mcpactor/internal/introduction"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Own returns the class of the keys of a scope that share their lists with no other scope.
func Own(scope string) string { return "scope " + scope }

// Of returns the class of a key to whose session the capabilities are declared, see [mcpbridge.Server.ListClass]. It is not secret.
// Keys of one class have the same capabilities, and with ListClass the same introduction. Without ListClass, they are one class if their sessions are opened in
// the same way: the server has no Auth and no HTTPClient, PerKey returns the same for them, and no roots are declared.
// It blocks as long as PerKey does. ctx may have an introduction, see [introduction.With].
func Of(ctx context.Context, s *mcpbridge.Server, key messages.Key, can *mcp.ClientCapabilities) string {
	key = key.Normal()
	declared := identity.OfCapabilities(can)
	switch {
	case s.ListClass != nil:
		class, err := guard.Call(func() (string, error) { return s.ListClass(key), nil })
		session, invalid := opening(s, "", introduction.Declared(declared, introduction.Of(ctx)))
		if err != nil || invalid != nil || class == "" {
			return Own(key.Scope)
		}
		return "class " + session + " " + class
	case s.Auth != nil, s.HTTPClient != nil, can != nil && can.RootsV2 != nil:
		return Own(key.Scope)
	}
	one, err := s.ForKey(ctx, key)
	if err != nil { // the dial will fail as well, and say why
		return Own(key.Scope)
	}
	memory := "" // the same for all keys and in all processes
	if one.InMemory != s.InMemory {
		memory = identity.Of(one.InMemory)
	}
	session, err := opening(one, memory, declared)
	if err != nil {
		return Own(key.Scope)
	}
	return "opening " + session
}

// opening identifies what the opening of a session depends on. The error is that of a set-up call that cannot be
// encoded, and so cannot be sent.
func opening(s *mcpbridge.Server, memory, declared string) (string, error) {
	sent, err := guard.Call(func() ([]byte, error) { // may have types of the user
		return json.Marshal([]any{s.Setup, s.ClientInfo, s.Initialize})
	})
	sum := identity.NewSum()
	sum.Add(s.Command, s.Dir, fmt.Sprint(s.InheritEnv), s.URL, s.Transport, s.ProtocolVersion, memory, declared, string(sent))
	sum.Add(s.Args...)
	sum.AddMap(s.Env)
	sum.AddMap(s.Headers)
	return sum.String(), err
}
