package handles

import (
	"slices"
	"time"
)

// reminted is why a handle is lost whose id comes again.
const reminted = "its id was minted anew"

// unbound is why a handle is lost that was bound to an earlier session.
const unbound = "its session was lost"

// minted notes which handle a mint has minted.
func (b *Book) minted(k *kind, m *Mint, id string, generation uint64, now time.Time) {
	h := k.all[k.fullID(id, m.By.Scope)]
	if h != nil && k.IsUnique(id) && h.state != releasing { // the server has one for all who ask
		k.line.used--
		b.decide(Decision{Forget: m.Record})
		h.state, h.Used = held, now
		b.grant(k, now)
	} else {
		h = b.added(k, m, id, generation, now)
	}
	for _, e := range m.ends {
		if e.mints[m] {
			delete(e.mints, m)
			e.waits[h] = true
			h.ends = append(h.ends, e)
		}
	}
	if !m.ended {
		b.holds(h, m.Holder)
		b.idles(h)
	}
	if k.Bound && generation > 0 && generation < m.opened {
		b.lost(h, unbound, now)
	}
	b.freed(h, now)
}

// added adds the handle that a mint has minted.
func (b *Book) added(k *kind, m *Mint, id string, generation uint64, now time.Time) *Handle {
	h := &Handle{
		Name: Name{k.Server, k.Mint, id}, Kind: k.Kind, By: m.By, key: m.By, Record: m.Record, Generation: generation, Minted: m.Since, Used: now,
		turn: m.turn, suspect: make(suspicion),
	}
	if m.suspect {
		h.suspect.raise()
	}
	at := h.fullID()
	before := k.all[at]
	k.all[at] = h // first: it has a place
	if before != nil {
		b.lost(before, reminted, now)
	}
	if !m.ended { // it knows this one
		k.stale[at] = slices.DeleteFunc(k.stale[at], func(o Holder) bool { return o == m.Holder })
	}
	if len(k.stale[at]) == 0 {
		delete(k.stale, at)
	}
	if k.Bound {
		b.decide(Decision{Pin: h.By})
	}
	k.line.hasRoomFor()
	b.say(IsMinted, h.By, h.Mint, "")
	return h
}

// unanswered is why it is not known what a mint has minted.
const unanswered = "a call that mints was not answered: what it has minted is not known"

// unminted notes that a mint has minted nothing.
func (b *Book) unminted(k *kind, m *Mint) {
	b.over(k, m)
	b.forget(m)
}

// away leaves what a mint has minted to another member of the cluster, which has its key by now. Its record stays.
func (b *Book) away(k *kind, m *Mint) {
	b.over(k, m)
	b.Forgotten(m.Record)
}

// over ends a mint, and with it its place.
func (b *Book) over(k *kind, m *Mint) {
	delete(k.mints, m)
	k.line.used--
	m.state = done
	b.answerMint(m, func(*End) {})
}

// forget deletes the record of a mint. One that was never granted has none.
func (b *Book) forget(m *Mint) {
	if m.Since.IsZero() {
		b.Forgotten(m.Record)
	} else {
		b.decide(Decision{Forget: m.Record})
	}
}

// refuse refuses a mint that waits: its holder has ended.
func (b *Book) refuse(m *Mint) {
	m.state = done
	b.decide(Decision{Refuse: m})
	b.forget(m)
	b.answerMint(m, func(*End) {})
}

// answerMint tells the ends that wait for a mint.
func (b *Book) answerMint(m *Mint, tell func(*End)) {
	for _, e := range m.ends {
		if e.mints[m] {
			tell(e)
			delete(e.mints, m)
			b.endIfOver(e)
		}
	}
	m.ends = nil
}
