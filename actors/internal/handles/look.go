package handles

import (
	"slices"
	"time"
)

// runsFor is how long a mint may run on after its answer was lost. Until then, a list without what it mints proves nothing.
const runsFor = time.Minute

// lookFor asks for the handles that there are, if a mint was lost.
func (b *Book) lookFor(k *kind, now time.Time) {
	if !k.Own || k.look != nil {
		return
	}
	l := &look{at: now, lost: k.lost(), ended: map[string]bool{}}
	if len(l.lost) == 0 {
		return
	}
	k.look = l
	b.decide(Decision{List: k.Kind, By: l.lost[0].By})
}

// Listed notes which handles of a kind there are. known is false if the server has not said so.
func (b *Book) Listed(of *Kind, ids []string, known bool, now time.Time) {
	k := b.kindOf(of.Server, of.Mint)
	if k == nil || k.look == nil {
		return
	}
	if !known { // the next lost mint asks again, and so does the end of a holder
		for _, m := range k.look.lost {
			b.answerMint(m, func(e *End) { e.left(m.By, k.Mint, unanswered) })
		}
		k.look = nil
		return
	}
	k.look.ids, k.look.known = ids, true
	for m := range k.mints { // also those that were sent since the list was asked for: the server may have listed what they have minted
		if m.state == underWay {
			k.look.sent = append(k.look.sent, m)
		}
	}
	b.settle(k, now)
}

// settle releases what lost mints have minted, as soon as all mints that were under way when the list came are answered.
func (b *Book) settle(k *kind, now time.Time) {
	l := k.look
	if l == nil || !l.known || slices.ContainsFunc(l.sent, func(m *Mint) bool { return m.state == underWay }) {
		return
	}
	k.look = nil
	ids := slices.DeleteFunc(l.ids, func(id string) bool {
		at := k.fullID(id, l.lost[0].By.Scope)
		return k.all[at] != nil || l.ended[at]
	})
	for _, m := range l.lost {
		switch {
		case m.state != lost: // its answer has come meanwhile
		case len(ids) == 0 && l.at.Before(m.lostAt.Add(runsFor)):
			b.answerMint(m, func(e *End) { e.left(m.By, k.Mint, unanswered) })
			b.looksAgain(k, m.lostAt.Add(runsFor))
		case len(ids) == 0:
			b.unminted(k, m)
			m.state = settled
		default:
			m.ended = true // nobody knows the handle
			delete(k.mints, m)
			m.state, m.found, m.suspect = settled, ids[0], l.broke
			k.found = b.turn
			b.minted(k, m, m.found, 0, now)
			k.all[k.fullID(m.found, m.By.Scope)].turn = b.turn
			ids = ids[1:]
		}
	}
	b.grant(k, now)
	if slices.ContainsFunc(k.lost(), func(m *Mint) bool { return !slices.Contains(l.lost, m) }) {
		b.lookFor(k, now) // for those that were lost since
	}
}

// looksAgain has it asked at a time, or earlier, which handles there are.
func (b *Book) looksAgain(k *kind, at time.Time) {
	if k.lookAt.IsZero() || at.Before(k.lookAt) {
		k.lookAt = at
	}
	b.at(k.lookAt)
}

// lookDue asks which handles there are if it is time for that.
func (b *Book) lookDue(k *kind, now time.Time) {
	if now.Before(k.lookAt) {
		b.at(k.lookAt)
	} else if !k.lookAt.IsZero() {
		k.lookAt = time.Time{}
		b.lookFor(k, now)
	}
}
