package handles

import (
	"slices"
	"time"
)

// Ask asks for the turn of a mint. If too many wait, it returns false. Otherwise a decision grants it, now or later, or refuses it.
func (b *Book) Ask(m *Mint, now time.Time) (accepted bool) {
	k := b.kindOf(m.Kind.Server, m.Kind.Mint)
	if k.line.waiting >= maxWaiting {
		return false
	}
	b.records[m.Record] = true
	k.line.push(m, false)
	b.grant(k, now)
	return true
}

// Refuse refuses all mints that wait.
func (b *Book) Refuse() {
	for _, m := range slices.Collect(b.Waiting()) {
		b.kindOf(m.Kind.Server, m.Kind.Mint).line.remove(m)
		b.refuse(m)
	}
}

// Answered notes the answer to a mint that was sent. It may come after the call has failed.
func (b *Book) Answered(m *Mint, a Answer, generation uint64, now time.Time) {
	k := b.kindOf(m.Kind.Server, m.Kind.Mint)
	same := k.all[k.fullID(a.ID, m.By.Scope)]
	switch {
	case m.state == settled && a.ID != "":
		b.late(k, m, a.ID, generation, now)
	case m.state != underWay && m.state != lost:
		return // it is known what it has minted
	case m.state == lost && same != nil && m.turn <= same.turn:
		return // another one has minted it since, or a list was read so: this one is lost in its place
	case a.Full && m.state == underWay:
		delete(k.mints, m)
		k.line.used--
		k.line.isFull(k.certain(), now)
		if m.ended || m.moved {
			b.refuse(m)
		} else {
			m.state = waiting
			k.line.push(m, true)
		}
		b.settle(k, now)
		b.grant(k, now)
	case a.None, a.Full:
		b.Failed(m, false, now)
	case a.ID == "":
		b.Failed(m, true, now)
	case m.moved:
		b.away(k, m)
		b.settle(k, now)
		b.grant(k, now)
	default:
		delete(k.mints, m)
		m.suspect = m.suspect || m.state == lost && m.turn <= k.found // it may be what was found, and released since
		m.state = done
		b.minted(k, m, a.ID, generation, now)
		b.settle(k, now)
	}
}

// late notes what a mint has minted that was settled by a list before. The list may have been of an earlier time, or what it has may be another's.
func (b *Book) late(k *kind, m *Mint, id string, generation uint64, now time.Time) {
	found := k.all[k.fullID(m.found, m.By.Scope)]
	switch {
	case id != m.found && k.all[k.fullID(id, m.By.Scope)] == nil:
		k.line.used++
		m.ended, m.suspect = true, true
		b.minted(k, m, id, generation, now)
	case found == nil || found.Record != m.Record: // it was saved again
		b.decide(Decision{Forget: m.Record})
	}
}

// Failed notes that a mint was not answered, or that nobody waits for its turn any longer. mayHaveMinted is false if it certainly has minted nothing.
func (b *Book) Failed(m *Mint, mayHaveMinted bool, now time.Time) {
	k := b.kindOf(m.Kind.Server, m.Kind.Mint)
	switch {
	case m.state == waiting:
		k.line.remove(m)
		m.state = done
		b.forget(m)
	case m.state != underWay && (m.state != lost || mayHaveMinted):
		return
	case mayHaveMinted && m.moved:
		b.away(k, m)
	case mayHaveMinted:
		b.lose(k, m, now)
	default:
		b.unminted(k, m)
	}
	b.settle(k, now) // first: what a lost mint has minted has its place
	b.grant(k, now)
}

// lose notes that the answer to a mint is lost. Its place stays taken.
func (b *Book) lose(k *kind, m *Mint, now time.Time) {
	m.state, m.lostAt = lost, now
	k.mints[m] = true
	if all := k.lost(); len(all) > maxLeft {
		b.unminted(k, all[0])
	}
	b.say(IsLost, m.By, k.Mint, unanswered)
	b.lookFor(k, now)
	if !k.Own {
		b.answerMint(m, func(e *End) { e.left(m.By, k.Mint, unanswered) })
	}
}
