package bridge

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// repetitions is how often a request is made again that one server of several may have refused.
const repetitions = 4

// balance knows whether a session is refused by one server of several, which are balanced without affinity: whether
// a request that changes nothing is refused in the words of a call, then answered, and then refused once more. A
// server that was restarted knows the session no more, and one that refuses the request to every session never
// answers it.
type balance struct {
	said atomic.Pointer[[16]byte] // in what words it is refused; nil: by none
}

// note makes a request of a question again that was refused like a call, though the session is known.
func (b *balance) note(ctx context.Context, got answers, calls kinds, repeat func(context.Context, check) *answer) {
	if !slices.ContainsFunc(calls, func(k kind) bool { return k.status == http.StatusBadRequest }) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, halfTimeout)
	defer cancel()
	for which, a := range got {
		again := func() *answer { return repeat(ctx, check(which)) }
		isOpen := a == nil && check(which) == checkPing // the list was answered before
		if !isOpen && !a.refusesLike(calls) {
			continue
		}
		if refusal := alternates(a, calls, again); refusal != nil {
			said := wire.EvidenceOf(refusal).Digest
			b.said.Store(&said)
			return
		}
	}
}

// alternates makes a request again, and returns a refusal that came before and after an answer, or nil. a is what the
// request got before, or nil.
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
			isWell = true // once more
		default:
			return nil
		}
	}
	return nil
}

// refusesLike reports whether an answer is a 400, as servers of the TypeScript SDK give it to sessions that they
// do not know, in the words in which a call was refused.
func (a *answer) refusesLike(calls kinds) bool {
	return a.read() == readRefused && a.refusal.Status == http.StatusBadRequest &&
		wire.EvidenceOf(a.refusal).Digest != wire.Evidence{}.Digest && calls.haveWordsOf(a.refusal)
}

// name adds to a refusal that it may come from one server of several, if that is known of its words.
func (b *balance) name(e *mcpbridge.Error) *mcpbridge.Error {
	if said := b.said.Load(); said != nil && *said == wire.EvidenceOf(e).Digest {
		e.Detail += ": the server knows this session at one time, and not at another: is it balanced without affinity?"
	}
	return e
}
