package callbook

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

const (
	// maxProposed bounds the calls of one scope that this process has proposed and that wait for an answer, and
	// maxProposedTotal those of all scopes.
	maxProposed      = 1 << 10
	maxProposedTotal = 1 << 16
	// maxSent bounds the calls that were sent, or never will be, in a book without a store.
	maxSent = 1 << 12
)

// proposed are the keys of calls that this process has proposed, by their scopes.
type proposed struct {
	all map[messages.Key]bool
	of  map[string]int
}

// scopeOf returns the scope in the key of a record, quoted.
func scopeOf(key messages.Key) string {
	scope, _ := strconv.QuotedPrefix(key.Scope)
	return scope
}

// set notes whether a call waits.
func (p *proposed) set(key messages.Key, waits bool) {
	switch scope := scopeOf(key); {
	case waits == p.all[key]:
	case waits:
		p.all[key] = true
		p.of[scope]++
	default:
		delete(p.all, key)
		if p.of[scope]--; p.of[scope] == 0 {
			delete(p.of, scope)
		}
	}
}

// isFull reports whether one more call of the scope of a key would be too many.
func (p *proposed) isFull(key messages.Key) bool {
	return !p.all[key] && (p.of[scopeOf(key)] >= maxProposed || len(p.all) >= maxProposedTotal)
}

// Propose changes the record of a key as Change does, to that of a call that waits for an answer. It fails if too many wait.
func (b *Book) Propose(ctx context.Context, key messages.Key, next func(Record) (Record, bool)) (now Record, changed bool, err error) {
	b.sweepFromNowOn()
	if b.isFull(key) {
		b.recount(ctx, key)
		if b.isFull(key) {
			return Record{}, false, fmt.Errorf("%d calls of the scope, or %d in all, wait for an answer already", maxProposed, maxProposedTotal)
		}
	}
	return b.Change(ctx, key, next)
}

func (b *Book) isFull(key messages.Key) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.proposed.isFull(key)
}

// recountEvery is how often the calls that wait are looked at when there are too many.
const recountEvery = 5 * time.Second

// recount forgets the calls of the scope of a key that other processes have answered.
func (b *Book) recount(ctx context.Context, of messages.Key) {
	b.mu.Lock()
	var keys []messages.Key
	if now := time.Now(); !now.Before(b.recountAt) {
		b.recountAt = now.Add(recountEvery)
		for key := range b.proposed.all {
			if scopeOf(key) == scopeOf(of) {
				keys = append(keys, key)
			}
		}
	}
	b.mu.Unlock()
	for _, key := range keys {
		if ctx.Err() != nil {
			return
		}
		if r, err := b.Find(ctx, key); err == nil && (r == nil || r.State != Proposed) {
			b.note(key, false)
		}
	}
}

// note notes whether a call waits for an answer.
func (b *Book) note(key messages.Key, waits bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.proposed.set(key, waits)
}

// noteSent notes a call that is sent, or never will be. Without a store, the oldest one that is over makes room for it.
func (b *Book) noteSent(ctx context.Context, key messages.Key) {
	if b.IsKept() {
		return
	}
	b.mu.Lock()
	b.sent = append(b.sent, key)
	var oldest []messages.Key
	for i := 0; len(b.sent) > maxSent && i < len(b.sent); {
		if b.entries[b.sent[i]] != nil { // it runs
			i++
			continue
		}
		oldest = append(oldest, b.sent[i])
		b.sent = slices.Delete(b.sent, i, i+1)
	}
	b.mu.Unlock()
	for _, key := range oldest {
		_ = b.store.Delete(ctx, key) // in memory
	}
}
