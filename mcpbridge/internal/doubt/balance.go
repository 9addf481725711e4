package doubt

import (
	"net/http"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// repetitions is how often a check is repeated that one server of several may have refused.
const repetitions = 4

// balance finds out whether one of several servers refuses a session, because they are balanced without affinity. Then
// a check is refused in the words of a call, answered, and refused once more. A server that has restarted would not
// answer in between, and neither would one that refuses the check to every session.
type balance struct {
	wasRefused, wasKnown, isWell bool
	asked                        int
}

// next takes the next answer to the check. It returns a refusal that came both before and after an answer, or nil, and
// whether the check is to be repeated.
func (b *balance) next(a *Answer, calls Kinds) (named *mcpbridge.Error, again bool) {
	b.asked++
	isRefused := a.refusesLike(calls)
	switch {
	case isRefused && b.wasKnown:
		return a.Refusal, false
	case isRefused:
		b.wasRefused = true
	case a.read() == readKnown && b.wasRefused:
		b.wasKnown = true
	case a.read() == readKnown && !b.isWell:
		b.isWell = true // it may be refused the next time
	default:
		return nil, false
	}
	return nil, b.asked < repetitions
}

// refusesLike reports whether an answer is a 400 in the words in which a call was refused. Servers of the TypeScript SDK
// refuse an unknown session with 400.
func (a *Answer) refusesLike(calls Kinds) bool {
	return a.read() == readRefused && a.Refusal.Status == http.StatusBadRequest &&
		wire.EvidenceOf(a.Refusal).Digest != wire.Evidence{}.Digest && calls.haveWordsOf(a.Refusal)
}
