package contract

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/internal/tasks"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// durableCall is what the store has of a call with [messages.CallTool.Durable]. It is stored before the call is sent,
// and again when the call has become a task.
type durableCall struct {
	Digest string    `json:"digest"` // of the tool and the arguments
	Task   string    `json:"task,omitempty"`
	Until  time.Time `json:"until"` // nobody asks for it later
}

// keptAfter is how long a durable call is kept after its deadline.
const keptAfter = 24 * time.Hour

// durableKey returns the key of the record of a durable call.
func durableKey(key messages.Key, id string) messages.Key {
	record := recordkey.Call(key.Scope, "task "+id)
	record.Server = key.Server
	return record
}

// IsOutdated reports whether a record is of a durable call that nobody asks for any more.
func IsOutdated(record *mcpbridge.Record, now time.Time) bool {
	var d durableCall
	return record != nil && json.Unmarshal(record.Call, &d) == nil && !d.Until.IsZero() && now.After(d.Until)
}

// inStore runs a request to the store about the record of the call. It tries again: another request about this record, such
// as one of the sweep, may hold it for a moment.
func (k *Call) inStore(store KeyStore, what string, f func(context.Context, messages.Key) error) (done bool) {
	store.Key = durableKey(k.Key, k.Op.RequestID())
	return store.Try(what, func(ctx context.Context) (err error) {
		for pause := 10 * time.Millisecond; pause < time.Second; pause *= 2 {
			if err = f(ctx, store.Key); err == nil || ctx.Err() != nil {
				return err
			}
			<-time.After(pause)
		}
		return err
	})
}

// errUnread is in the error of a durable call whose record was not read: the call may have run before.
var errUnread = errors.New("the record of the call was not read")

// begin returns the task that the call has become in an earlier run, maybe of another process. If the call was not sent
// before, begin stores it, and returns nil. If it was sent, and no task is known, the error is [mcpbridge.Lost]. ctx is that
// of the run.
func (k *Call) begin(ctx context.Context, store KeyStore) (*tasks.Task, error) {
	if store.Cfg.Store == nil {
		return nil, &mcpbridge.Error{Class: mcpbridge.Invalid, Detail: "durable: the supervisor has no store", Err: errUnread}
	}
	var known *mcpbridge.Record
	loaded := k.inStore(store, "load a call", func(ctx context.Context, key messages.Key) (err error) {
		known, err = store.Cfg.Store.Load(ctx, key)
		return err
	})
	var d durableCall
	switch {
	case !loaded:
		return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: noStore, Err: errUnread}
	case k.Run.Lost != nil: // it may be repeated
	case known == nil || IsOutdated(known, time.Now()):
	case json.Unmarshal(known.Call, &d) != nil:
		return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: "what the store has of the call cannot be read", Err: errUnread}
	case d.Digest != k.digest():
		return nil, &mcpbridge.Error{Class: mcpbridge.Invalid, Detail: "id: another call has had it"}
	case d.Task == "":
		return nil, &mcpbridge.Error{Class: mcpbridge.Lost, Sent: true, Detail: "the call was sent before, and its answer is not known"}
	default:
		return &tasks.Task{ID: d.Task, Status: tasks.Working}, nil
	}
	if !k.keepTask(ctx, store, "") {
		return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: noStore}
	}
	return nil, nil
}

// noStore is why a durable call that could not be stored was not sent.
const noStore = "the store does not answer, and the call is durable"

// keepTask stores the call, and the task that it has become. The deadline is that of the run: the session changes that of
// the call when it cuts off the run.
func (k *Call) keepTask(ctx context.Context, store KeyStore, task string) (stored bool) {
	deadline, _ := ctx.Deadline()
	return k.inStore(store, "save a call", func(ctx context.Context, key messages.Key) error {
		data, err := json.Marshal(durableCall{k.digest(), task, deadline.Add(keptAfter)})
		if err != nil {
			return err
		}
		return store.Cfg.Store.Save(ctx, key, &mcpbridge.Record{Call: data})
	})
}

// forget deletes the record of a call that certainly did not run.
func (k *Call) forget(store KeyStore) {
	k.inStore(store, "delete a call", func(ctx context.Context, key messages.Key) error { return store.Cfg.Store.Delete(ctx, key) })
}

// NoteRecord notes that a run has read the record, unless e is errUnread. A call whose record was read did not run before,
// or e says that it did.
func (k *Call) NoteRecord(e *mcpbridge.Error) {
	k.Run.recordRead = k.Run.recordRead || !errors.Is(e, errUnread)
}

// digest identifies the tool and the arguments.
func (k *Call) digest() string {
	params := k.Op.(*messages.CallTool).Params
	text, _ := json.Marshal([]any{params.Name, params.Arguments}) // what cannot be encoded is not sent either
	return fmt.Sprintf("%x", sha256.Sum256(text))
}
