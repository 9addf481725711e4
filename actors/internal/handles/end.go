package handles

import (
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// Matches says who ends, and what of.
type Matches struct {
	// Key matches the server of a handle and the scope of its holder.
	Key func(messages.Key) bool
	// Scope is that of all holders, or "" if they may have any.
	Scope string
	// Holder is one of those that share Scope, or "" for all.
	Holder string
}

func (m Matches) holderOf(server string) func(Holder) bool {
	return func(h Holder) bool {
		return (m.Scope == "" || m.Scope == h.Scope) && (m.Holder == "" || m.Holder == h.Name) && m.Key(messages.Key{Server: server, Scope: h.Scope})
	}
}

// End ends holders: what nobody else holds is released as soon as no call uses it, or after grace. By a time, what is not released is
// named, and a decision says that the end is over. The result is nil if there is nothing to wait for.
func (b *Book) End(m Matches, grace, by, now time.Time) *End {
	e := &End{grace: grace, by: by, waits: map[*Handle]bool{}, mints: map[*Mint]bool{}}
	for k := range b.kinds() {
		matches := m.holderOf(k.Server)
		b.endMints(k, e, matches)
		for _, h := range k.sorted(func(h *Handle) bool { return h.isEndedBy(matches, m) }) {
			b.unhold(h, e, matches, now)
		}
		for id, of := range k.stale {
			if k.stale[id] = without(of, matches); len(k.stale[id]) == 0 {
				delete(k.stale, id)
			}
		}
		b.lookFor(k, now)
	}
	if e.isOver() && len(e.Left)+e.Released == 0 {
		return nil
	}
	b.ends = append(b.ends, e)
	b.at(grace)
	b.at(by)
	b.endIfOver(e)
	return e
}

// isEndedBy reports whether the end of holders concerns a handle: they hold it, or it was theirs and is being released, or can be released again.
func (h *Handle) isEndedBy(matches func(Holder) bool, m Matches) bool {
	theirs := m.Holder == "" && m.Key(h.By) && (h.Kind.Bound || h.state != held || len(h.holders) == 0)
	return h.isHeldBy(matches) || theirs && (h.state != left || !h.mayBeAnother())
}

// endMints ends the mints of holders: those that wait are refused, and what the others mint is released.
func (b *Book) endMints(k *kind, e *End, matches func(Holder) bool) {
	for _, holder := range slices.Clone(k.line.turns) {
		if !matches(holder) {
			continue
		}
		for _, m := range slices.Clone(k.line.mints[holder]) {
			k.line.remove(m)
			b.refuse(m)
		}
	}
	for m := range k.mints {
		switch {
		case !matches(m.Holder), m.state == lost && m.ended && !k.Own: // it was named
		case m.state == lost && !k.Own:
			e.left(m.By, k.Mint, unanswered)
			m.ended = true
		default:
			m.ended, e.mints[m] = true, true
			m.ends = append(m.ends, e)
		}
	}
}

// unhold ends what holders have of a handle, and releases it if nobody else holds it.
func (b *Book) unhold(h *Handle, e *End, matches func(Holder) bool, now time.Time) {
	if h.Kind.Bound && matches(Holder{Scope: h.By.Scope}) {
		h.holders = nil
	}
	h.idled = without(h.idled, matches)
	if h.holders = without(h.holders, matches); len(h.holders) > 0 {
		h.handsOver()
		return
	}
	e.waits[h] = true
	h.ends = append(h.ends, e)
	switch h.state {
	case held:
		b.freed(h, now)
	case left:
		b.release(h, now)
	}
}

func without(holders []Holder, matches func(Holder) bool) (others []Holder) {
	for _, o := range holders {
		if !matches(o) {
			others = append(others, o)
		}
	}
	return others
}

// Due does what is due.
func (b *Book) Due(now time.Time) {
	b.next = time.Time{}
	for _, e := range slices.Clone(b.ends) {
		b.endDue(e, now)
	}
	orphans := !b.graced.IsZero() && !now.Before(b.graced)
	if orphans {
		b.graced = time.Time{}
	} else {
		b.at(b.graced)
	}
	for k := range b.kinds() {
		for _, h := range k.sorted(func(h *Handle) bool { return orphans && h.isOrphan }) {
			h.isOrphan, h.holders = false, without(h.holders, func(o Holder) bool { return o == h.restored })
			h.handsOver()
			b.freed(h, now)
		}
		for _, h := range k.sorted(func(h *Handle) bool { return h.state == held && h.busy == 0 && h.isIdle(now) }) {
			h.idled, h.holders = append(h.idled, h.holders...), nil
			b.freed(h, now)
		}
		for _, h := range k.all {
			if h.state == held {
				b.idles(h)
			}
		}
		b.grant(k, now)
		b.lookDue(k, now)
		if orphans {
			b.lookFor(k, now)
		}
	}
}

// isIdle reports whether a handle was not used for too long.
func (h *Handle) isIdle(now time.Time) bool {
	return h.Kind.Idle > 0 && !now.Before(h.Used.Add(h.Kind.Idle))
}

// endDue releases what calls still use at the end of the grace, and names at the end what is not released.
func (b *Book) endDue(e *End, now time.Time) {
	if now.Before(e.grace) {
		b.at(e.grace)
	} else {
		for k := range b.kinds() {
			for _, h := range k.sorted(func(h *Handle) bool { return h.state == held && e.waits[h] }) {
				h.cut = true
				b.freed(h, now)
			}
		}
	}
	if now.Before(e.by) {
		b.at(e.by)
		return
	}
	for m := range e.mints {
		e.left(m.By, m.Kind.Mint, unanswered)
	}
	for h := range e.waits {
		why := "there was no time to release it"
		if h.state == releasing {
			why = "it may be released: there was no time for the answer"
		}
		e.left(h.By, h.Mint, why)
		h.ends = slices.DeleteFunc(h.ends, func(other *End) bool { return other == e })
	}
	e.mints, e.waits = nil, nil
	b.endIfOver(e)
}

// Moved forgets the handles that keys have minted which another member of the cluster has from now on. Their records stay, for that member.
func (b *Book) Moved(matches func(messages.Key) bool, now time.Time) {
	for k := range b.kinds() {
		for m := range k.mints {
			if m.moved = m.moved || matches(m.By); m.moved && m.state == lost {
				b.away(k, m)
			}
		}
		for _, h := range k.sorted(func(h *Handle) bool { return matches(h.key) }) {
			b.answer(h, func(*End) {})
			delete(k.all, h.fullID())
			delete(b.records, h.Record)
			h.state = over
			k.line.used--
		}
		b.settle(k, now)
		b.grant(k, now)
	}
}
