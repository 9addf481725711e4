package view

import (
	"cmp"
	"slices"
	"time"
)

// Keeper decides for one member what it asks the witness, and what follows from the answers. Times are by the
// clock of the member's lease.
//
//	outside ──hears all members──▶ inside ──Leaves──▶ leaving ──Gone──▶ outside
//	   ▲                             │
//	   └────── removed, or resigns ──┘
type Keeper struct {
	length time.Duration // of the lease
	me     Member        // ID is "" between two incarnations
	beaten bool          // the last answer had a beat of me
	inside bool          // the last answer had me as a member
	leaves bool
	gone   bool
	ceded  []string // incarnations of this member that have ended, and are to be removed

	last       Answer
	known      bool     // there is an answer
	former     []string // members that were removed since the incarnation began, the last ones of them
	answeredAt time.Duration
	seen       map[string]sighting
	unheard    []string      // members that this one cannot reach
	chosenAt   time.Duration // since when it is the one that must resign, or 0
	unmet      bool          // a member of the view was not heard yet

	asked  *Request // that waits for its answer, or nil
	number uint64   // of the last request
	sentAt time.Duration
	failed bool // the last request had no answer in time
}

// sighting is the last beat of a member, and when it was seen first.
type sighting struct {
	revision uint64
	since    time.Duration
	changed  time.Duration // when it was seen to change, or 0
}

// drift is how much longer than its lease a member must be silent until others remove it: more than the clocks of
// two members may differ by.
func drift(length time.Duration) time.Duration { return length + length/50 }

// Patience returns how long an answer is awaited. It is a little less than the time of two ticks, which may be early by a moment.
func Patience(lease time.Duration) time.Duration { return lease * 7 / 16 }

// NewKeeper returns the keeper of a member that is outside, with the time of a lease.
func NewKeeper(length time.Duration) *Keeper {
	return &Keeper{length: length, seen: map[string]sighting{}}
}

// Begin begins an incarnation, which wants to be a member.
func (k *Keeper) Begin(me Member) {
	k.End()
	k.me, k.chosenAt = me, 0
	k.me.Lease = k.length
	k.unheard, k.unmet, k.former = nil, true, nil
}

// End ends the incarnation, whose lease has ended before.
func (k *Keeper) End() {
	k.me, k.beaten, k.inside, k.asked, k.leaves, k.gone = Member{}, false, false, nil, false, false
}

// Cede says that nothing is left of an incarnation that has ended: the others need not wait for the end of its lease.
func (k *Keeper) Cede(id string) { k.ceded = append(k.ceded, id) }

// Leave says that the member wants to own nothing any longer.
func (k *Keeper) Leave() { k.leaves = true }

// Depart says whether nothing is left of the member: it leaves the view.
func (k *Keeper) Depart(is bool) { k.gone = is }

// Joins reports whether the member may be in the next view: it has asked for that.
func (k *Keeper) Joins() bool { return !k.inside && k.asked != nil && k.asked.Next != nil }

// View returns the last view that is known.
func (k *Keeper) View() View { return k.last.View }

// Candidates returns those who want to be members, in the order of their ids.
func (k *Keeper) Candidates() (all []Member) {
	for _, id := range k.last.ids() {
		if _, is := k.last.View.Member(id); !is && id != k.me.ID {
			all = append(all, k.last.Beats[id].From)
		}
	}
	return all
}

// leaseOf returns the longer one of the own lease and that of a member, or of one that wants to be one: while the configuration
// of a cluster is changed, the leases of its members differ.
func (k *Keeper) leaseOf(id string) time.Duration {
	m, is := k.last.View.Member(id)
	if !is {
		m = k.last.Beats[id].From
	}
	return max(k.length, m.Lease)
}

// beats reports whether a member may have renewed its beat lately.
func (k *Keeper) beats(id string, now time.Duration) bool {
	return now-k.seen[id].since < k.leaseOf(id)*3/4
}

// Lives reports whether a member, or one that wants to be one, was seen to renew its beat lately.
func (k *Keeper) Lives(id string, now time.Duration) bool {
	changed := k.seen[id].changed
	return changed != 0 && now-changed < k.leaseOf(id)*3/4
}

// Hears notes which members cannot be reached, and whether all members of the view have been heard: otherwise the
// member does not join.
func (k *Keeper) Hears(unheard []string, all bool) { k.unheard, k.unmet = unheard, !all }

// Ask returns the request that is due, and its number, or nil. There is one request at a time.
func (k *Keeper) Ask(now time.Duration) (*Request, uint64) {
	switch {
	case k.me.ID == "" && len(k.ceded) == 0:
		return nil, 0
	case k.asked != nil && now-k.sentAt < Patience(k.length):
		return nil, 0
	case k.asked != nil: // if requests arrive and answers do not, the beat must become old: ask for an answer first
		k.failed = true
	}
	q := &Request{From: k.me, Stored: k.last.Stored}
	if !k.failed && k.known {
		k.change(q, now)
		q.Beat, q.First, q.Unheard = k.me.ID != "" && !k.gone, !k.beaten, k.unheard
	}
	k.asked, k.sentAt = q, now
	k.number++
	return q, k.number
}

// forgotten is after how many leases of silence one that wants to be a member is forgotten.
const forgotten = 10

// change adds the first change to a request that is due.
func (k *Keeper) change(q *Request, now time.Duration) {
	v := k.last.View
	for len(k.ceded) > 0 {
		id := k.ceded[0]
		if k.remove(q, id) {
			return
		}
		k.ceded = k.ceded[1:]
	}
	for _, id := range k.last.ids() {
		after := drift(k.leaseOf(id))
		if _, member := v.Member(id); !member {
			after = forgotten * k.leaseOf(id)
		}
		if at := k.seen[id]; id != k.me.ID && now-at.since >= after {
			k.remove(q, id)
			return
		}
	}
	m, inside := v.Member(k.me.ID)
	switch {
	case k.me.ID == "":
	case k.gone:
		k.remove(q, k.me.ID)
	case !inside && k.beaten && !k.unmet && !k.leaves:
		q.Next = v.with(k.me)
	case inside && k.leaves && !m.Leaving:
		k.me.Leaving = true
		q.From, q.Next = k.me, v.with(k.me)
	}
}

// remove adds the removal of an incarnation to a request, unless the witness does not know it any longer.
func (k *Keeper) remove(q *Request, id string) bool {
	beat, beats := k.last.Beats[id]
	_, member := k.last.View.Member(id)
	if member {
		q.Next = k.last.View.without(id)
	}
	if beat.From.ID = id; beats || member {
		q.Silent = &beat
	}
	return beats || member
}

// Verdict is what follows from an answer.
type Verdict struct {
	Changed  bool          // the view is new
	Renewed  bool          // the lease runs anew from From, when the renewal was sent
	From     time.Duration //
	Removed  bool          // the others have removed this incarnation, or have forgotten that it wants to be a member
	Lost     bool          // the witness has lost views: the incarnation must end as well, and Removed is true
	Resigns  bool          // others cannot reach it: it must end, so that the rest can work
	AskAgain bool          // at once
}

// Take takes the answer to a request. One that comes late counts for nothing.
func (k *Keeper) Take(number uint64, a Answer, now time.Duration) (v Verdict) {
	if k.asked == nil || number != k.number {
		return v
	}
	q := k.asked
	k.asked = nil
	v.Lost = k.known && !a.View.follows(k.last.View) || k.returns(a)
	v.Changed = !k.known || a.View.Number != k.last.View.Number
	v.AskAgain = k.failed || !k.known || q.changes() // the next change may be due, or another member was faster
	gap := now - k.answeredAt
	absent := !k.known || gap > k.length/2 // it was cut off, or paused: who has beaten meanwhile is not known
	k.last, k.known, k.failed, k.answeredAt = a, true, false, now
	k.see(now, absent)
	if k.me.ID == "" {
		v.AskAgain = len(k.ceded) > 0
		return v
	}
	_, beats := a.Beats[k.me.ID]
	_, inside := a.View.Member(k.me.ID)
	v.Removed = v.Lost || k.inside && !inside || k.beaten && !beats
	if k.beaten, k.inside = beats, inside && !v.Removed; !k.inside {
		return v
	}
	v.Renewed, v.From = q.Beat && beats, k.sentAt
	if !k.mustResign() {
		k.chosenAt = 0
	} else if k.chosenAt == 0 {
		k.chosenAt = now
	}
	v.Resigns = k.chosenAt != 0 && now-k.chosenAt >= k.length*3/8 // the others have said it anew since, each at least once
	return v
}

// maxFormer bounds the former members that are known. One of them can only come back if it runs, and has not noticed yet that it was
// removed.
const maxFormer = 1000

// returns reports whether a former member is there again, and notes which are former ones.
func (k *Keeper) returns(a Answer) (is bool) {
	for _, id := range k.former {
		_, beats := a.Beats[id]
		is = is || beats
	}
	for _, m := range k.last.View.Members {
		if _, still := a.View.Member(m.ID); !still {
			k.former = append(k.former, m.ID)
		}
	}
	k.former = k.former[max(0, len(k.former)-maxFormer):]
	return is
}

// see notes since when each beat is known.
func (k *Keeper) see(now time.Duration, absent bool) {
	seen := make(map[string]sighting, len(k.seen))
	for _, id := range k.last.ids() {
		at, known := k.seen[id]
		if revision := k.last.Beats[id].Revision; !known || absent || at.revision != revision {
			if known && at.revision != revision {
				at.changed = now
			}
			at.revision, at.since = revision, now
		}
		seen[id] = at
	}
	k.seen = seen
}

// mustResign reports whether the member is the one that has to go, because some members do not reach each other. Of
// the members that renew their beats, and that say of each other that they are not heard, it is the one that most others do not
// hear; of several, one that leaves anyway, and then the one with the highest id. All members see the same
// beats, so that they agree soon.
func (k *Keeper) mustResign() bool {
	unheard := func(of, by string) bool {
		list := k.last.Beats[by].Unheard
		if by == k.me.ID {
			list = k.unheard
		}
		return slices.Contains(list, of)
	}
	var beating []Member
	for _, m := range k.last.View.Members {
		if m.ID == k.me.ID || k.beats(m.ID, k.answeredAt) {
			beating = append(beating, m)
		}
	}
	degree := map[string]int{}
	for i, a := range beating {
		for _, b := range beating[i+1:] {
			if unheard(a.ID, b.ID) && unheard(b.ID, a.ID) {
				degree[a.ID]++
				degree[b.ID]++
			}
		}
	}
	if degree[k.me.ID] == 0 {
		return false
	}
	leaves := func(m Member) int {
		if m.Leaving {
			return 1
		}
		return 0
	}
	last := slices.MaxFunc(beating, func(a, b Member) int {
		return cmp.Or(cmp.Compare(degree[a.ID], degree[b.ID]), cmp.Compare(leaves(a), leaves(b)), cmp.Compare(a.ID, b.ID))
	})
	return last.ID == k.me.ID
}
