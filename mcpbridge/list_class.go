package mcpbridge

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/messages"
)

// OwnListClass returns the class of the keys of a scope that share their lists with no other scope.
func OwnListClass(scope string) string { return "scope " + scope }

// ClassOf returns the class of a key, see ListClass. It is not secret. Without ListClass, keys are one class if their
// sessions are opened in the same way: the server has no Auth and no HTTPClient, and PerKey returns the same for
// them. It blocks as long as PerKey does.
func (s *Server) ClassOf(ctx context.Context, key messages.Key) string {
	key = key.Normal()
	switch {
	case s.ListClass != nil:
		class, err := guard.Call(func() (string, error) { return s.ListClass(key), nil })
		if err == nil && class != "" {
			return "class " + class
		}
		return OwnListClass(key.Scope)
	case s.Auth != nil, s.HTTPClient != nil:
		return OwnListClass(key.Scope)
	}
	one, err := s.ForKey(ctx, key)
	if err != nil { // the dial will fail as well, and say why
		return OwnListClass(key.Scope)
	}
	text, err := json.Marshal([]any{
		one.Command, one.Args, one.Env, one.InheritEnv, one.Dir, one.URL, one.Transport, one.Headers, one.Setup, one.ProtocolVersion, fmt.Sprintf("%p", one.InMemory),
	})
	if err != nil { // of a set-up call, which will fail
		return OwnListClass(key.Scope)
	}
	return fmt.Sprintf("opening %x", sha256.Sum256(text))
}
