package handles

import (
	"time"
)

const (
	// maxReleases bounds how many handles of a server are released at once.
	maxReleases = 16
	// maxLeft bounds the handles of a kind that are left and tried again.
	maxLeft = 1 << 10
	// maxTries is how often it is tried to release a handle, and triesEvery how long it is waited at least between two of them.
	maxTries   = 5
	triesEvery = time.Minute
)

// Outcome is what has become of a handle that was to be released.
type Outcome struct {
	Gone     bool   // the server has no such handle
	Left     string // why it is not released, or ""
	Doubtful bool   // it may be released
	Refused  bool   // by the server: it is not tried again unless a close command asks
}

// Released notes what has become of a handle that was to be released.
func (b *Book) Released(h *Handle, o Outcome, now time.Time) {
	srv := b.servers[h.Server]
	srv.releasing--
	switch {
	case h.state != releasing && o.Left == "": // it is lost, or has moved
		b.decide(Decision{Forget: h.Record})
	case h.state != releasing:
	case o.Left != "":
		h.IsDoubtful = h.IsDoubtful || o.Doubtful
		if len(h.holders) > 0 { // somebody has used it meanwhile
			h.state, h.cut, h.tries = held, false, 0
			h.handsOver()
			b.answer(h, func(*End) {})
			b.idles(h)
			break
		}
		if o.Refused {
			h.tries = maxTries
		}
		b.leave(h, o.Left, now)
	case o.Gone:
		b.remove(h, IsGone, "", now)
	default:
		b.remove(h, IsReleased, "", now)
	}
	b.releaseNext(srv, now)
}

// release releases a handle that nobody holds.
func (b *Book) release(h *Handle, now time.Time) {
	if h.mayBeAnother() {
		b.leave(h, "its id may be another handle's by now", now)
		return
	}
	srv := b.servers[h.Server]
	h.state, h.triedAt = releasing, now
	h.tries++
	srv.queue = append(srv.queue, h)
	b.releaseNext(srv, now)
}

// releaseNext releases the handles of a server whose turn it is.
func (b *Book) releaseNext(srv *server, now time.Time) {
	for len(srv.queue) > 0 && srv.releasing < maxReleases {
		h := srv.queue[0]
		srv.queue = srv.queue[1:]
		if h.state != releasing {
			continue // it is lost, or has moved
		}
		srv.releasing++
		var until time.Time
		for _, e := range h.ends {
			if e.by.After(until) {
				until = e.by
			}
		}
		b.decide(Decision{Release: h, Until: until})
	}
}

// holds notes that somebody holds a handle: who has ended meanwhile does not wait for it any more. One that is bound is released with them nevertheless.
func (b *Book) holds(h *Handle, by Holder) {
	h.heldBy(by)
	if h.state == held && !h.Kind.Bound {
		b.answer(h, func(*End) {})
	}
}

// freed releases a handle if nobody holds it and no call uses it.
func (b *Book) freed(h *Handle, now time.Time) {
	if h.state == held && len(h.holders) == 0 && (h.busy == 0 || h.cut) {
		b.release(h, now)
	}
}

// leave names a handle that is not released.
func (b *Book) leave(h *Handle, why string, now time.Time) {
	if h.state, h.why = left, why; h.mayBeAnother() && !h.Kind.Own {
		b.decide(Decision{Forget: h.Record}) // it will never be released, and no list is read as if a lost mint had minted it
	}
	b.say(IsLeft, h.By, h.Mint, why)
	b.answer(h, func(e *End) { e.left(h.By, h.Mint, why) })
	k := b.kindOf(h.Server, h.Mint)
	all := k.sorted(func(h *Handle) bool { return h.state == left })
	if len(all) > maxLeft {
		b.drop(all[0], now)
	}
}

// remove removes a handle that is no more.
func (b *Book) remove(h *Handle, what What, reason string, now time.Time) {
	if h.state == over {
		return
	}
	b.say(what, h.By, h.Mint, reason)
	b.answer(h, func(e *End) {
		if what != IsLost {
			e.Released++
		}
	})
	b.drop(h, now)
}

// drop removes a handle, and its record.
func (b *Book) drop(h *Handle, now time.Time) {
	k := b.kindOf(h.Server, h.Mint)
	at := h.fullID()
	if k.all[at] == h {
		delete(k.all, at)
	}
	if !h.Kind.IsUnique(h.ID) {
		k.stale[at] = append(append(k.stale[at], h.holders...), h.idled...)
	}
	if k.look != nil {
		k.look.ended[at] = true
	}
	h.state = over
	h.suspect.raise() // an attempt may be under way
	k.line.used--
	b.decide(Decision{Forget: h.Record})
	if k.Bound {
		b.decide(Decision{Pin: h.By})
	}
	b.grant(k, now)
}

// answer tells the ends that wait for a handle.
func (b *Book) answer(h *Handle, tell func(*End)) {
	for _, e := range h.ends {
		if e.waits[h] {
			tell(e)
			delete(e.waits, h)
			b.endIfOver(e)
		}
	}
	h.ends = nil
}

// lost notes that a handle is no more although somebody may hold it.
func (b *Book) lost(h *Handle, why string, now time.Time) { b.remove(h, IsLost, why, now) }
