package mcpbridge

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/identity"
	"github.com/mcpactor/mcpactor/messages"
)

// OwnListClass returns the class of the keys of a scope that share their lists with no other scope.
func OwnListClass(scope string) string { return "scope " + scope }

// Declared identifies capabilities: equal ones are declared in the same way. It is empty for none.
func Declared(can *mcp.ClientCapabilities) string {
	if can == nil {
		return ""
	}
	text, err := guard.Call(func() ([]byte, error) { // may have types of the user
		return json.Marshal(struct {
			*mcp.ClientCapabilities
			Roots *mcp.RootCapabilities `json:"roots,omitempty"`
		}{can, can.RootsV2})
	})
	switch {
	case err != nil: // they cannot be declared either
		return "nothing that can be encoded"
	case string(text) == "{}":
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// ClassOf returns the class of a key to whose session the capabilities are declared, see ListClass. It is not secret.
// Keys of one class have the same capabilities. Without ListClass, they are one class if their sessions are opened in
// the same way: the server has no Auth and no HTTPClient, PerKey returns the same for them, and no roots are declared.
// It blocks as long as PerKey does.
func (s *Server) ClassOf(ctx context.Context, key messages.Key, can *mcp.ClientCapabilities) string {
	key = key.Normal()
	declared := Declared(can)
	switch {
	case s.ListClass != nil:
		class, err := guard.Call(func() (string, error) { return s.ListClass(key), nil })
		opening, invalid := s.opening("", declared)
		if err != nil || invalid != nil || class == "" {
			return OwnListClass(key.Scope)
		}
		return "class " + opening + " " + class
	case s.Auth != nil, s.HTTPClient != nil, can != nil && can.RootsV2 != nil:
		return OwnListClass(key.Scope)
	}
	one, err := s.ForKey(ctx, key)
	if err != nil { // the dial will fail as well, and say why
		return OwnListClass(key.Scope)
	}
	memory := "" // the same for all keys and in all processes
	if one.InMemory != s.InMemory {
		memory = identity.Of(one.InMemory)
	}
	opening, err := one.opening(memory, declared)
	if err != nil {
		return OwnListClass(key.Scope)
	}
	return "opening " + opening
}

// opening identifies what the opening of a session depends on. The error is that of a set-up call that cannot be
// encoded, and so cannot be sent.
func (s *Server) opening(memory, declared string) (string, error) {
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
