package doubt

import "github.com/mcpactor/mcpactor/mcpbridge"

// judgeAttach is judge for a session that is to be resumed. The answer that there is no ping is enough.
func (got Answers) judgeAttach(hasList bool) finding {
	f := got.judge(func(*mcpbridge.Error) bool { return true }, hasList)
	if got[Ping].hasNoPing() || got[Ping].isKnown() && got[List].read() != readRefused { // some servers answer a ping on any session
		f.verdict = Alive
	}
	return f
}

// judgeAttach judges the checks on a session that is to be resumed. They are repeated if they may have refreshed the
// credentials. Without an answer the control decides. So a dial fails only if no new session can be opened.
func (i *Inquiry) judgeAttach(s Session, got Answers) {
	f := got.judgeAttach(s.HasList)
	if f.verdict == Unsettled && s.MayRefresh && i.tries == 1 {
		i.ask(s, attaching, Ask, attachTimeout, Ping, List)
		return
	}
	isGone := false
	for _, a := range got {
		if a != nil && a.Refusal != nil && !isGone {
			i.Refusal, isGone = a.Refusal, a.read() == readGone
		}
	}
	switch i.round, i.again = got, f.again; {
	case isGone:
		i.conclude(s, Dead)
	case f.verdict == Alive:
		i.conclude(s, Alive)
	case i.Refusal != nil && i.Refusal.Class == mcpbridge.RateLimited:
		i.conclude(s, Unsettled)
	default:
		if len(i.again) == 0 {
			i.again = []Check{Ping, List}
		}
		i.isAway = true
		i.control(s)
	}
}

// comparedAttach concludes with what the control has shown.
func (i *Inquiry) comparedAttach(s Session, v Verdict) {
	switch {
	case v == Dead:
	case i.round[Ping].isKnown(), v == Alive && (i.Failure == nil || i.Failure.Class != mcpbridge.Unauthorized):
		v = Alive
	default:
		v = Unsettled
	}
	i.conclude(s, v)
}
