package handles

import (
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// Begins notes that a call with handles as arguments begins: who uses a handle holds it. stale is true if the holder means one that is no more, and
// whose id another one may have by now.
func (b *Book) Begins(tool string, given []Name, by Holder, now time.Time) (uses []*Use, stale bool) {
	for _, n := range given {
		k := b.kindOf(n.Server, n.Mint)
		if k == nil {
			continue
		}
		at := k.fullID(n.ID, by.Scope)
		h := k.all[at]
		if (h == nil || !slices.Contains(h.holders, by)) && slices.Contains(k.stale[at], by) {
			return nil, true
		}
		if h != nil {
			uses = append(uses, &Use{of: h, by: by, Kind: h.Kind, Releases: tool == h.Kind.Release})
		}
	}
	for _, u := range uses {
		h := u.of
		h.busy++
		h.Used = now
		b.holds(h, by)
	}
	return uses, false
}

// Ends notes that a call that has used a handle has ended. answer is nil if it was not answered; then mayHaveRun says whether it may have run.
func (b *Book) Ends(u *Use, answer *Answer, mayHaveRun bool, now time.Time) {
	h := u.of
	h.busy--
	h.Used = now
	if answer != nil && (answer.Gone || u.Releases && !answer.IsErr) { // who has called knows that it is no more
		h.holders = slices.DeleteFunc(h.holders, func(o Holder) bool { return o == u.by })
		h.handsOver()
	}
	if answer == nil && u.Releases && mayHaveRun {
		h.IsDoubtful = true
		if h.state == releasing { // the attempt does not know
			h.suspect.raise()
		}
	}
	switch {
	case answer == nil, h.state == over, h.state == releasing: // its own release says
	case answer.Gone && u.Releases:
		b.remove(h, IsGone, "", now)
	case answer.Gone:
		b.lost(h, "the server has no such handle", now)
	case !answer.IsErr && u.Releases:
		b.remove(h, IsReleased, "", now)
	}
	if h.state == held {
		b.idles(h)
		b.freed(h, now)
	}
}

// Alive notes that a holder does something, or without a name, its scope: it keeps what it has held in an earlier process.
func (b *Book) Alive(by Holder) {
	if b.graced.IsZero() {
		return
	}
	for k := range b.kinds() {
		for _, h := range k.all {
			if by.Scope == h.restored.Scope && (by.Name == "" || by.Name == h.restored.Name) {
				h.isOrphan = false
			}
		}
	}
}

// Broke notes that a connection to a server was lost: that of a key, or, if all is true, perhaps that of all keys. Handles that are not unique may be others by
// now.
func (b *Book) Broke(key messages.Key, all bool) {
	srv := b.servers[key.Server]
	if srv == nil {
		return
	}
	for _, k := range srv.of {
		for _, h := range k.all {
			if all || h.By == key {
				h.suspect.raise()
			}
		}
		if k.look != nil && (all || k.look.lost[0].By == key) {
			k.look.broke = true
		}
		for m := range k.mints {
			m.suspect = m.suspect || all || m.By == key
		}
	}
}

// Opened notes that a key has a connection, with an MCP session of a generation. Handles that are bound to an earlier one are lost, and
// what was left of the server is tried again.
func (b *Book) Opened(key messages.Key, generation uint64, now time.Time) {
	srv := b.servers[key.Server]
	if srv == nil {
		return
	}
	for _, k := range srv.of {
		for _, h := range k.sorted(func(h *Handle) bool { return k.Bound && h.By == key && h.Generation < generation }) {
			b.lost(h, unbound, now)
		}
		for m := range k.mints {
			if m.By == key {
				m.opened = generation
			}
		}
		for _, h := range k.sorted(func(h *Handle) bool { return h.isTriedAgain(now) }) {
			b.release(h, now)
		}
		b.lookFor(k, now)
	}
}

// isTriedAgain reports whether it is tried again to release a handle that was left.
func (h *Handle) isTriedAgain(now time.Time) bool {
	return h.state == left && h.tries < maxTries && !now.Before(h.triedAt.Add(triesEvery)) && !h.mayBeAnother()
}
