package interception

import (
	"context"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/callbook"
	"github.com/mcpactor/mcpactor/messages"
)

// recorded returns the innermost interceptor: it answers durable calls from their records, or passes them on. It passes on all
// other operations.
func recorded(book *callbook.Book, next actors.Runner) actors.Runner {
	return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
		call, isCall := op.(*messages.CallTool)
		switch {
		case !isCall || !call.Durable || call.ID == "":
			return next(ctx, op)
		case !book.IsKept():
			return nil, messages.NewFailure(call, messages.CodeInvalid, "durable: the supervisor has no store")
		}
		return book.DoAs(ctx, call, acceptedAs(ctx, call), func(ctx context.Context, e *callbook.Entry) (messages.Result, error) {
			return next(context.WithValue(ctx, recordKey{}, e), e.Mark(call))
		})
	}
}

// acceptedAs identifies what a call does, before interceptors have changed it.
func acceptedAs(ctx context.Context, call *messages.CallTool) string {
	if i, is := ctx.Value(operationKey{}).(*operation); is {
		if accepted, is := i.Op.(*messages.CallTool); is && accepted.Durable && accepted.ID == call.ID {
			call = accepted
		}
	}
	return callbook.DigestOf(call)
}
