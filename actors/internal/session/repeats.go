package session

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/callbook"
	"github.com/mcpactor/mcpactor/internal/rounds"
	"github.com/mcpactor/mcpactor/messages"
)

// refusesRepeat answers a call that is about to run for the first time if it is one more of a row, see [mcpbridge.Limits]. It reports
// whether it has done so.
func (s *session) refusesRepeat(k *contract.Call, now time.Time) bool {
	op, is := k.Op.(*messages.CallTool)
	if !is || s.limits.MaxRepeats == 0 || k.Run.Attempts > 0 || rounds.IsLater(op) {
		return false
	}
	why, in := s.repeats.Begin(callbook.DigestOf(op), s.limits.MaxRepeats, now)
	if why == "" {
		return false
	}
	f := k.Failure(messages.CodeRateLimited, why)
	contract.RetryIn(f, in)
	k.Run.Answered.Bounded = true
	s.out.reply(k, f)
	return true
}

// noteResult notes the result of a call, which the next one may repeat.
func (s *session) noteResult(k *contract.Call, result messages.Result) {
	if result, is := result.(*messages.ToolResult); is && s.limits.MaxRepeats > 0 {
		s.repeats.End(callbook.DigestOf(k.Op.(*messages.CallTool)), result.Result, time.Now())
	}
}
