package toolset

import (
	"maps"
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// owners watches actors, and calls ended in a goroutine when one of them has terminated. Its methods
// may be called from any goroutine. It is the process that Proto.Actor tells of the end.
type owners struct {
	system *actor.ActorSystem
	ended  func(owner string)

	mu      sync.Mutex
	pid     *actor.PID            // nil before the first watch, and after the end
	watched map[string]*actor.PID // by what nameOf returns
	closed  bool
}

// nameOf identifies an actor. It is empty for nil.
func nameOf(pid *actor.PID) string {
	if pid == nil {
		return ""
	}
	return pid.Address + "/" + pid.Id
}

// watch watches an actor until it terminates. It may run code of the actor's process, so it is
// not called under a lock, nor in an actor.
func (o *owners) watch(owner *actor.PID) {
	if owner == nil || !o.add(owner) {
		return
	}
	process, found := o.system.ProcessRegistry.Get(owner)
	if !found {
		o.end(owner)
		return
	}
	process.SendSystemMessage(owner, &actor.Watch{Watcher: o.pid})
}

// add notes an actor, and reports whether it is a new one.
func (o *owners) add(owner *actor.PID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.watched[nameOf(owner)] != nil {
		return false
	}
	if o.pid == nil {
		o.pid, _ = o.system.ProcessRegistry.Add(o, o.system.ProcessRegistry.NextId())
		o.watched = map[string]*actor.PID{}
	}
	o.watched[nameOf(owner)] = owner
	return true
}

// end forgets an actor that has terminated.
func (o *owners) end(owner *actor.PID) {
	o.mu.Lock()
	known := o.watched[nameOf(owner)] != nil
	delete(o.watched, nameOf(owner))
	o.mu.Unlock()
	if known {
		go o.ended(nameOf(owner))
	}
}

// close ends the watches.
func (o *owners) close() {
	o.mu.Lock()
	watched := slices.Collect(maps.Values(o.watched))
	o.closed, o.watched = true, nil
	o.mu.Unlock()
	for _, owner := range watched {
		if process, found := o.system.ProcessRegistry.Get(owner); found {
			process.SendSystemMessage(owner, &actor.Unwatch{Watcher: o.pid})
		}
	}
	if o.pid != nil {
		o.system.ProcessRegistry.Remove(o.pid)
	}
}

// SendSystemMessage implements [actor.Process].
func (o *owners) SendSystemMessage(_ *actor.PID, message any) {
	if m, is := message.(*actor.Terminated); is {
		o.end(m.Who)
	}
}

// SendUserMessage does nothing.
func (*owners) SendUserMessage(*actor.PID, any) {}

// Stop does nothing.
func (*owners) Stop(*actor.PID) {}
