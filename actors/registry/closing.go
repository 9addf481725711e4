package registry

import (
	"github.com/mcpactor/mcpactor/actors/internal/ring"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// maxClosing is how many close commands without a reply there may be of one scope, and how many that
// concern no particular scope: a call looks at those that may concern its key.
const maxClosing = 1 << 10

// closings are the close commands without a reply, the oldest first.
type closings struct {
	all     ring.Ring[*closeCommand]
	wide    ring.Ring[*closeCommand]                // those that may concern any scope
	ofScope map[string]*ring.Ring[*closeCommand]    // the others, by each of their scopes
	waits   map[*table.Registration][]*closeCommand // those that wait for a session to be closed
}

// closingNodes are the positions of a close command in [closings].
type closingNodes struct {
	all, wide ring.Node[*closeCommand]
	scopes    []string                   // that it concerns, at most WalkStep; none if it may concern any
	ofScopes  []ring.Node[*closeCommand] // for each of them
}

// of returns the close commands that concern a scope, apart from the wide ones. Those are returned for "".
func (s *closings) of(scope string) *ring.Ring[*closeCommand] {
	if scope == "" {
		return &s.wide
	}
	if of := s.ofScope[scope]; of != nil {
		return of
	}
	return &ring.Ring[*closeCommand]{}
}

// add adds a close command that may concern any scope.
func (s *closings) add(closing *closeCommand) {
	s.all.Push(&closing.nodes.all, closing)
	s.wide.Push(&closing.nodes.wide, closing)
}

// narrow notes that a close command concerns some scopes only.
func (s *closings) narrow(closing *closeCommand, scopes ...string) {
	n := &closing.nodes
	s.wide.Remove(&n.wide)
	n.scopes, n.ofScopes = scopes, make([]ring.Node[*closeCommand], len(scopes))
	for i, scope := range scopes {
		s.ofScope[scope] = s.of(scope)
		s.ofScope[scope].Push(&n.ofScopes[i], closing)
	}
}

// remove removes a close command that was replied to.
func (s *closings) remove(closing *closeCommand) {
	n := &closing.nodes
	s.all.Remove(&n.all)
	s.wide.Remove(&n.wide)
	for i, scope := range n.scopes {
		of := s.ofScope[scope]
		if of.Remove(&n.ofScopes[i]); of.Count == 0 {
			delete(s.ofScope, scope)
		}
	}
}

// applyPendingCloses applies the close commands that came before a call to the key of the
// call: a session that they have not reached is drained, and leftovers are closed before
// the session of the call opens.
func (r *registry) applyPendingCloses(key messages.Key) {
	for closing := range r.closings.wide.All() {
		r.applyPendingClose(closing, key)
	}
	for closing := range r.closings.of(key.Scope).All() {
		r.applyPendingClose(closing, key)
	}
}

// applyPendingClose applies one of them.
func (r *registry) applyPendingClose(closing *closeCommand, key messages.Key) {
	if closing.replied || !closing.match(key) {
		return
	}
	e := r.table.Entry(key)
	if e != nil && e.Current != nil && closing.drains() && e.Current.Serial <= closing.UpTo {
		r.drainFor(closing, e.Current)
	}
	_, left := closing.leftovers[key]
	if left || e == nil && (closing.listingStore || len(closing.stored) > 0) {
		r.cleanUp(closing, key)
	}
}
