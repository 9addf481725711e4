package actors

import (
	"context"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// remembered are the keys that the store has records of.
type storeListed struct {
	of   *closeCommand
	keys []messages.Key
}

// list asks the store which of the keys that a close command is about it knows.
func (r *registry) listStore(c actor.Context, closing *closeCommand) {
	cfg, match := r.cfg, closing.match
	r.pending++
	cfg.async(c, func() any {
		var keys []messages.Key
		keyStore{cfg: cfg}.try("list", func(ctx context.Context) error {
			all, err := cfg.Store.Keys(ctx)
			if err == nil {
				keys = slices.DeleteFunc(all, func(key messages.Key) bool { return !match(key) })
			}
			return err
		})
		return &storeListed{closing, keys}
	})
}

// onRemembered goes on with the close command.
func (r *registry) onStoreListed(c actor.Context, msg *storeListed) {
	r.pending--
	if !msg.of.replied {
		msg.of.listingStore, msg.of.stored = false, msg.keys
		r.continueClose(c, msg.of)
	}
	r.stopIfEmpty(c)
}
