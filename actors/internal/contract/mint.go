package contract

import (
	"context"

	"github.com/mcpactor/mcpactor/messages"
)

// Mint is told what becomes of a call that mints a handle, or releases one, in the goroutine of its run. Such a call is never sent again if it may have run.
type Mint interface {
	// Begin comes before the call is sent. With an error, it is not sent.
	Begin() error
	// Answered comes with the answer, over an MCP session of a generation, also when the call was given up.
	Answered(result messages.Result, generation uint64)
}

// mintKey is the key of the Mint in the context of a call.
type mintKey struct{}

// PrivateKey keeps it from operations that the call causes.
func (mintKey) PrivateKey() {}

// WithMint returns a context for a call that mints a handle.
func WithMint(ctx context.Context, m Mint) context.Context {
	return context.WithValue(ctx, mintKey{}, m)
}

// MintOf returns the Mint of a context, or nil.
func MintOf(ctx context.Context) Mint {
	m, _ := ctx.Value(mintKey{}).(Mint)
	return m
}
