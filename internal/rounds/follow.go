package rounds

import (
	"context"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// ErrTooMany is the error of an operation whose server asks again and again.
var ErrTooMany = &mcpbridge.Error{Class: mcpbridge.ServerError, Sent: true, Begun: true, Detail: "the server asks for more again and again"}

// Do runs an operation with all its rounds on one connection, whose Do is given. It blocks.
func Do(ctx context.Context, do func(context.Context, messages.Operation) (messages.Result, error), op messages.Operation) (messages.Result, error) {
	var all Rounds
	for {
		result, err := do(ctx, all.Request(op))
		asked, more := result.(*Asked)
		if err != nil && all.HaveBegun() {
			err = begun(err)
		}
		if err != nil || !more {
			return result, err
		}
		var step Step
		switch all, step = all.After(asked); step {
		case GiveUp:
			return nil, ErrTooMany
		case Ask:
			answers, err := do(ctx, &Questions{Header: *op.Head(), Call: op, Asked: asked})
			if err != nil {
				return nil, begun(err)
			}
			all = all.Answered(answers.(*Answers).All)
		}
	}
}

// begun returns the error of a later round: the operation may have run.
func begun(err error) error {
	e := *mcpbridge.AsError(err)
	e.Begun = true
	return &e
}
