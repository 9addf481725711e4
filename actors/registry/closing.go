package registry

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// maxClosing is how many close commands without a reply there may be of one scope, and how many that
// concern no particular scope: a call looks at those that may concern its key.
const maxClosing = 1 << 10

// closings are the close commands without a reply.
type closings struct {
	all     map[*closeCommand]struct{}
	wide    map[*closeCommand]struct{}            // those that may concern any scope
	ofScope map[string]map[*closeCommand]struct{} // the others, by each of their scopes
}

// add adds a close command that may concern any scope.
func (s *closings) add(closing *closeCommand) {
	s.all[closing], s.wide[closing] = struct{}{}, struct{}{}
}

// narrow notes that a close command concerns some scopes only.
func (s *closings) narrow(closing *closeCommand, scopes ...string) {
	delete(s.wide, closing)
	closing.ofScopes = scopes
	for _, scope := range scopes {
		if s.ofScope[scope] == nil {
			s.ofScope[scope] = map[*closeCommand]struct{}{}
		}
		s.ofScope[scope][closing] = struct{}{}
	}
}

// remove removes a close command that was replied to.
func (s *closings) remove(closing *closeCommand) {
	delete(s.all, closing)
	delete(s.wide, closing)
	for _, scope := range closing.ofScopes {
		if delete(s.ofScope[scope], closing); len(s.ofScope[scope]) == 0 {
			delete(s.ofScope, scope)
		}
	}
}

// mayClose reports whether another close command can be accepted, and rejects it otherwise.
func (r *registry) mayClose(c actor.Context, cmd messages.Command, of map[*closeCommand]struct{}) bool {
	if len(of) >= maxClosing {
		r.respond(c, messages.NewFailure(cmd, messages.CodeBusy, "too many close commands have no reply yet"))
		return false
	}
	return true
}

// applyPendingCloses applies the close commands that came before a call to the key of the
// call: a session that they have not reached is drained, and leftovers are closed before
// the session of the call opens.
func (r *registry) applyPendingCloses(c actor.Context, key messages.Key) {
	for closing := range r.closings.wide {
		r.applyPendingClose(c, closing, key)
	}
	for closing := range r.closings.ofScope[key.Scope] {
		r.applyPendingClose(c, closing, key)
	}
}

// applyPendingClose applies one of them.
func (r *registry) applyPendingClose(c actor.Context, closing *closeCommand, key messages.Key) {
	if closing.replied || !closing.match(key) {
		return
	}
	e := r.entries[key]
	if e != nil && e.current != nil && closing.drains() && e.current.serial <= closing.upTo {
		r.drainFor(c, closing, e.current)
	}
	_, left := closing.leftovers[key]
	if left || e == nil && (closing.listingStore || len(closing.stored) > 0) {
		r.cleanUp(c, closing, key)
	}
}
