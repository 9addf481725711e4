package registry

import (
	"context"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// storeListed brings the keys that have a record in the store.
type storeListed struct {
	of   *closeCommand
	keys []messages.Key
}

// listStore asks the store for its keys that match a close command.
func (r *registry) listStore(c actor.Context, closing *closeCommand) {
	cfg, match := r.cfg, closing.match
	r.pending++
	cfg.Async(r.mailbox, func() any {
		var keys []messages.Key
		contract.KeyStore{Cfg: cfg}.Try("list", func(ctx context.Context) error {
			all, err := cfg.Store.Keys(ctx)
			if err == nil {
				keys = slices.DeleteFunc(all, func(key messages.Key) bool { return !match(key) })
			}
			return err
		})
		return &storeListed{closing, keys}
	})
}

// onStoreListed continues the close command.
func (r *registry) onStoreListed(c actor.Context, msg *storeListed) {
	r.pending--
	if !msg.of.replied {
		msg.of.listingStore, msg.of.stored = false, msg.keys
		r.continueClose(c, msg.of)
	}
	r.stopIfEmpty()
}
