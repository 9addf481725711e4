package bridge

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// repetitions is how often a check is repeated that one server of several may have refused.
const repetitions = 4

// balance finds out whether one of several servers refuses a session, because they are balanced without affinity. Then
// a check is refused in the words of a call, answered, and refused once more. A server that has restarted would not
// answer in between, and neither would one that refuses the check to every session.
type balance struct {
	digest atomic.Pointer[[16]byte] // of the words of the refusal; nil: not found
}

// note repeats the checks that were refused like a call, although the server knows the session.
func (b *balance) note(ctx context.Context, got answers, calls kinds, repeat func(context.Context, check) *answer) {
	if !slices.ContainsFunc(calls, func(k kind) bool { return k.status == http.StatusBadRequest }) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, halfTimeout)
	defer cancel()
	for which, a := range got {
		again := func() *answer { return repeat(ctx, check(which)) }
		isOpen := a == nil && check(which) == checkPing // the answer to the list came first
		if !isOpen && !a.refusesLike(calls) {
			continue
		}
		if refusal := alternates(a, calls, again); refusal != nil {
			digest := wire.EvidenceOf(refusal).Digest
			b.digest.Store(&digest)
			return
		}
	}
}

// alternates repeats a check, and returns a refusal that came both before and after an answer, or nil. a is the answer so
// far, or nil.
func alternates(a *answer, calls kinds, again func() *answer) *mcpbridge.Error {
	wasRefused, wasKnown, isWell := a != nil, false, false
	for range repetitions {
		a = again()
		isRefused := a.refusesLike(calls)
		switch {
		case isRefused && wasKnown:
			return a.refusal
		case isRefused:
			wasRefused = true
		case a.read() == readKnown && wasRefused:
			wasKnown = true
		case a.read() == readKnown && !isWell:
			isWell = true // it may be refused the next time
		default:
			return nil
		}
	}
	return nil
}

// refusesLike reports whether an answer is a 400 in the words in which a call was refused. Servers of the TypeScript SDK
// refuse an unknown session with 400.
func (a *answer) refusesLike(calls kinds) bool {
	return a.read() == readRefused && a.refusal.Status == http.StatusBadRequest &&
		wire.EvidenceOf(a.refusal).Digest != wire.Evidence{}.Digest && calls.haveWordsOf(a.refusal)
}

// name adds to the text of a refusal that one server of several may have refused, if that was found for these words.
func (b *balance) name(e *mcpbridge.Error) *mcpbridge.Error {
	if digest := b.digest.Load(); digest != nil && *digest == wire.EvidenceOf(e).Digest {
		e.Detail += ": the server knows this session at one time, and not at another: is it balanced without affinity?"
	}
	return e
}
