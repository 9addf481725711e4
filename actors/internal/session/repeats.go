package session

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/callbook"
	"github.com/mcpactor/mcpactor/internal/rounds"
	"github.com/mcpactor/mcpactor/messages"
)

// answerRepeat answers a call that is about to run for the first time if it is one more of a row, see [mcpbridge.Limits]. It reports
// whether it has done so.
func (s *session) answerRepeat(k *contract.Call, now time.Time) (answered bool) {
	op, is := k.Op.(*messages.CallTool)
	if !is || k.Releases || s.limits.MaxRepeats == 0 || k.Run.Attempts > 0 || rounds.IsLater(op) {
		return false
	}
	why, retryAfter := s.repeats.Begin(callbook.DigestOf(op), s.limits.MaxRepeats, now)
	if why == "" {
		return false
	}
	f := k.Failure(messages.CodeRateLimited, why)
	contract.RetryIn(f, retryAfter)
	k.Run.Answered.Bounded = true
	s.out.reply(k, f)
	return true
}

// noteReply notes what the server has answered to a call, which the next one may repeat. What is only begun is no answer.
func (s *session) noteReply(k *contract.Call, reply messages.Reply) {
	op, is := k.Op.(*messages.CallTool)
	if !is || k.Releases || s.limits.MaxRepeats == 0 {
		return
	}
	switch reply := reply.(type) {
	case *messages.ToolResult:
		if r := reply.Result; r != nil && (len(r.Content) > 0 || r.StructuredContent != nil) {
			s.repeats.End(callbook.DigestOf(op), r, time.Now())
		}
	case *messages.Failure:
		s.repeats.Fail(callbook.DigestOf(op), reply, time.Now())
	}
}
