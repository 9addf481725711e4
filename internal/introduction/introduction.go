// Package introduction gives the PerKey of a server what the client of a scope says of itself. A session that is only resumed
// to be closed is dialed without it: the scope may not be bound any longer.
package introduction

import (
	"context"
	"encoding/json"

	"github.com/mcpactor/mcpactor/internal/identity"
	"github.com/mcpactor/mcpactor/messages"
)

// key is the key of the introduction in a context.
type key struct{}

// With returns a context with the introduction of a scope, or with none if it is nil, whatever ctx has.
func With(ctx context.Context, in *messages.Introduction) context.Context {
	return context.WithValue(ctx, key{}, in)
}

// Of returns the introduction of a context that PerKey has got, or nil if the scope has none. Read-only.
func Of(ctx context.Context) *messages.Introduction {
	in, _ := ctx.Value(key{}).(*messages.Introduction)
	return in
}

// Identity returns an identity of an introduction: equal ones have the same, in all processes. It is empty for none.
func Identity(in *messages.Introduction) string {
	if in == nil {
		return ""
	}
	info, _ := json.Marshal(in.ClientInfo) // texts only
	further := map[string]string{}
	for name, value := range in.Initialize {
		further[name] = string(value)
	}
	sum := identity.NewSum()
	sum.Add(in.ProtocolVersion, string(info))
	sum.AddMap(further)
	return sum.String()
}

// Declared identifies what is declared to a session: capabilities, which declared identifies, and an introduction. See Declared
// of package mcpbridge's Resume.
func Declared(declared string, in *messages.Introduction) string { return declared + Identity(in) }
