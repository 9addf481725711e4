package toolset

import (
	"context"
	"errors"

	"github.com/mcpactor/mcpactor/messages"
)

// ended completes the failure of a call whose context has ended.
func ended(ctx context.Context, f *messages.Failure, detail string) error {
	f.Code, f.Detail, f.Cause = messages.CodeCancelled, detail, context.Cause(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		f.Code = messages.CodeDeadline
	}
	return f
}
