package registry

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// walk goes through the sessions of some servers in steps. Sessions that are added meanwhile are not
// visited.
type walk struct {
	cursors []*registration // for each server, the next session
	upTo    uint64          // the serial of the last session
	visit   func(reg *registration)
	done    func()

	cmd    messages.Command // that done answers, or nil
	caller *actor.PID       // of cmd
}

// walkDue says that the next step of a walk is due.
type walkDue struct{ *walk }

// beginWalk takes the first step of a walk through the sessions of the servers that are wanted.
func (r *registry) beginWalk(w *walk, wanted func(server string) bool) {
	w.cursors, w.upTo = r.index.firstOfServers(wanted), r.index.serial
	r.continueWalk(w)
}

// continueWalk takes the next step of a walk.
func (r *registry) continueWalk(w *walk) {
	for n := 0; n < contract.WalkStep && len(w.cursors) > 0; n++ {
		last := len(w.cursors) - 1
		reg := w.cursors[last]
		if reg == nil || reg.serial > w.upTo {
			w.cursors = w.cursors[:last]
			continue
		}
		w.cursors[last] = reg.newer
		if !reg.removed() {
			w.visit(reg)
		}
	}
	if len(w.cursors) > 0 {
		r.mailbox.PostUserMessage(&walkDue{w})
		return
	}
	w.done()
}
