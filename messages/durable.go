package messages

import (
	"context"

	"github.com/mcpactor/mcpactor/internal/caller"
)

// WithDurable returns a context for one call of a tool, by a client or a toolset. The call is durable under an id, see
// [CallTool.Durable]. It fails with [CodeInvalid] if the id is empty, or if the call has another one.
func WithDurable(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, caller.DurableKey{}, id)
}

// DurableOf returns the id of a context of [WithDurable].
func DurableOf(ctx context.Context) (id string, is bool) {
	id, is = ctx.Value(caller.DurableKey{}).(string)
	return id, is
}

// Resolution is what became of a durable call that was sent and not answered, as the configuration of its supervisor has found out.
type Resolution string

// The resolutions of a call.
const (
	// ResolvedUnknown: nobody can find out. The call is not sent again.
	ResolvedUnknown Resolution = ""
	// ResolvedRan: the call has run.
	ResolvedRan Resolution = "ran"
	// ResolvedNotRun: the call has certainly not run, and will not. It is sent again.
	ResolvedNotRun Resolution = "not_run"
)
