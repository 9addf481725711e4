package handles

import (
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// Record is what a store has of a handle, or of a mint without an answer.
type Record struct {
	Key        messages.Key `json:"key"` // of the call
	Holder     string       `json:"holder,omitempty"`
	Mint       string       `json:"mint"`
	ID         string       `json:"id,omitempty"`
	Generation uint64       `json:"generation,omitempty"`
	Since      time.Time    `json:"since"`
}

// Restore adds what an earlier process has minted, or another member of the cluster. Its holders have until a time to come back.
func (b *Book) Restore(at messages.Key, r Record, until, now time.Time) {
	k := b.kindOf(r.Key.Server, r.Mint)
	if k == nil || b.HasRecord(at) {
		return
	}
	b.records[at] = true
	holder := Holder{r.Key.Scope, r.Holder}
	k.line.used++
	if r.ID == "" {
		m := &Mint{Kind: k.Kind, By: r.Key, Holder: holder, Record: at, Since: r.Since, ended: true}
		b.lose(k, m, now)
		return
	}
	id := k.fullID(r.ID, holder.Scope)
	before := k.all[id] // two records of one id
	if before != nil && !r.Since.After(before.Minted) {
		k.line.used--
		b.decide(Decision{Forget: at})
		return
	}
	h := &Handle{
		Name: Name{k.Server, k.Mint, r.ID}, Kind: k.Kind, By: r.Key, key: r.Key, Record: at, Generation: r.Generation, Minted: r.Since, Used: now,
		holders: []Holder{holder}, restored: holder, isOrphan: true, IsDoubtful: true, suspect: make(suspicion),
	}
	h.suspect.raise()
	k.all[id] = h
	if before != nil {
		b.lost(before, reminted, now)
	}
	if b.graced.IsZero() || b.graced.Before(until) {
		b.graced = until
	}
	b.at(b.graced)
}
