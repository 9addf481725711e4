package callbook

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/messages"
)

// legacy are the records of the durable calls of version 0.2, which are kept for a day. They are looked for once.
type legacy struct {
	turn turn
	read bool
	keys map[messages.Key]bool
}

// find returns what version 0.2 has kept of a call: it was sent, or has become a task. It is zero if there is nothing.
func (l *legacy) find(ctx context.Context, b *Book, op *messages.CallTool, call string) (r Record, err error) {
	l.turn.take()
	defer l.turn.end()
	if !l.read {
		keys, err := b.store.Keys(context.WithoutCancel(ctx))
		if err != nil {
			return Record{}, err
		}
		l.read, l.keys = true, map[messages.Key]bool{}
		for _, key := range keys {
			if recordkey.IsOldCall(key) {
				l.keys[key] = true
			}
		}
	}
	key := recordkey.OldCall(op.Key.Normal(), op.ID)
	if !l.keys[key] {
		return Record{}, nil
	}
	kept, err := b.store.Load(context.WithoutCancel(ctx), key)
	if err != nil || kept == nil {
		return Record{}, err
	}
	var old struct {
		Digest, Task string
		Until        time.Time
	}
	if err := json.Unmarshal(kept.Call, &old); err != nil {
		return Record{}, errUnreadable
	}
	if r = (Record{State: Unknown, Task: old.Task, Until: old.Until}); old.Task != "" {
		r.State = Task
	}
	text, _ := json.Marshal([]any{op.Params.Name, op.Params.Arguments})
	if old.Digest == fmt.Sprintf("%x", sha256.Sum256(text)) {
		r.Call = call
	}
	if r.isOutdated(time.Now()) {
		return Record{}, nil
	}
	return r, nil
}
