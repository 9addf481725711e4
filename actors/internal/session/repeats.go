package session

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/callbook"
	"github.com/mcpactor/mcpactor/internal/repeats"
	"github.com/mcpactor/mcpactor/internal/rounds"
	"github.com/mcpactor/mcpactor/messages"
)

// repetition bounds how often in a row a caller gets the same result of the same call. most is MaxRepeats, see [mcpbridge.Limits].
type repetition struct{ row repeats.Row }

// refuse returns the failure of a call that is about to run for the first time if it is one too many of a row, or nil.
func (r *repetition) refuse(k *contract.Call, most int, now time.Time) *messages.Failure {
	op, is := k.Op.(*messages.CallTool)
	if !is || k.Releases || most == 0 || k.Run.Attempts > 0 || rounds.IsLater(op) {
		return nil
	}
	why, retryAfter := r.row.Begin(callbook.DigestOf(op), most, now)
	if why == "" {
		return nil
	}
	f := k.Failure(messages.CodeRateLimited, why)
	contract.RetryIn(f, retryAfter)
	k.Run.Answered.Bounded = true
	return f
}

// note notes what the server has answered to a call, which the next one may repeat. What is only begun is no answer.
func (r *repetition) note(k *contract.Call, most int, reply messages.Reply) {
	op, is := k.Op.(*messages.CallTool)
	if !is || k.Releases || most == 0 {
		return
	}
	switch reply := reply.(type) {
	case *messages.ToolResult:
		if result := reply.Result; result != nil && (len(result.Content) > 0 || result.StructuredContent != nil) {
			r.row.End(callbook.DigestOf(op), result, time.Now())
		}
	case *messages.Failure:
		r.row.Fail(callbook.DigestOf(op), reply, time.Now())
	}
}
