package view

import (
	"maps"
	"slices"
)

// Request is what a member asks the witness: to renew its beat, or only to read, and perhaps to replace the view.
// Requests are immutable once sent.
type Request struct {
	From    Member   `json:"from"`
	Beat    bool     `json:"beat,omitempty"`    // renew the beat of From, if there is one
	First   bool     `json:"first,omitempty"`   // or begin it: otherwise one that was removed would come back
	Unheard []string `json:"unheard,omitempty"` // ids of members that From cannot reach

	Next *View `json:"next,omitempty"` // takes the place of the view with the number before it; nil is no change
	// Silent, if it is not nil, is the beat of a member that has not renewed it since, or was never seen to. Otherwise nothing
	// changes. The beat is removed.
	Silent *Beat `json:"silent,omitempty"`
	// Stored is that of the last answer. Etcd replaces no other view, and removes no other beat than the one of Silent: it may have
	// been restored from a backup, and then have others with the same number or revision.
	Stored string `json:"-"`
}

// Beat is the last sign of life of a member, or of one that wants to join.
type Beat struct {
	Revision uint64   `json:"revision"` // grows with each renewal
	From     Member   `json:"from"`
	Unheard  []string `json:"unheard,omitempty"`
	Stored   string   `json:"-"` // as it is in etcd, which has no two that are alike
}

// Answer is what the witness knows after a request. It is read-only.
type Answer struct {
	View   View
	Beats  map[string]Beat // by id
	Stored string          // the view as it is in etcd, or "" if it has none
}

// Register is the state of a witness. All requests are done in one order, whoever keeps it: etcd does a request
// as one transaction, and the hosts of package quorum as one entry of their log.
type Register struct {
	Revision uint64          `json:"revision"`
	View     View            `json:"view"`
	Beats    map[string]Beat `json:"beats"`
}

// Do does a request, and returns what the register then has.
func (r *Register) Do(q *Request) Answer {
	r.Revision++
	if r.Beats == nil {
		r.Beats = map[string]Beat{}
	}
	if q.fits(r) {
		if q.Next != nil {
			r.View = *q.Next
		}
		if q.Silent != nil {
			delete(r.Beats, q.Silent.From.ID)
		}
	}
	if _, beats := r.Beats[q.From.ID]; q.Beat && (beats || q.First) {
		r.Beats[q.From.ID] = Beat{Revision: r.Revision, From: q.From, Unheard: q.Unheard}
	}
	return Answer{View: r.View, Beats: maps.Clone(r.Beats)}
}

// fits reports whether the change of a request is to be made.
func (q *Request) fits(r *Register) bool {
	return (q.Next == nil || q.Next.Number == r.View.Number+1) && (q.Silent == nil || q.Silent.Revision == r.Beats[q.Silent.From.ID].Revision)
}

// changes reports whether a request is to change the view, or who wants to be in it.
func (q *Request) changes() bool { return q.Next != nil || q.Silent != nil }

// ids returns the ids of all that a register knows, in order.
func (a Answer) ids() []string {
	all := slices.Collect(maps.Keys(a.Beats))
	for _, m := range a.View.Members {
		all = append(all, m.ID)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
