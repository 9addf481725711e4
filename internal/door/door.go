// Package door puts a process in front of an actor, which answers once the actor has
// stopped.
package door

import (
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/asynkron/protoactor-go/actor"
)

// Door is a process that forwards its messages to an actor. Once the actor has stopped, the
// door answers messages itself, which would otherwise be dead letters. The PID of a door
// can be watched and stopped like that of the actor. A door has no goroutine.
type Door struct {
	system *actor.ActorSystem
	late   func(message any, sender *actor.PID)
	ended  func(watcher, who *actor.PID)
	behind atomic.Pointer[behind] // nil until it is open, and once it is shut
	isShut atomic.Bool

	mu       sync.Mutex // guards watchers, and that nobody is added once shut
	watchers actor.PIDSet
}

// behind is the actor that a door forwards to. Its process takes messages for the mailbox
// even when Proto.Actor no longer finds the actor.
type behind struct {
	process actor.Process
	pid     *actor.PID
}

// Open returns the PID of a door to the actor that spawn spawns. The id of the PID is name. The actor must
// call stopped when it has stopped. From then on, late gets the messages, and another door may take the
// name. ended tells a watcher that the actor has stopped; it must not block. free is false if the name is taken in the system, and then nothing is spawned.
//
// The door is freed when the PID is no longer referenced. The actor, late and ended must not lead to
// it then.
func Open(
	system *actor.ActorSystem, name string, late func(message any, sender *actor.PID), ended func(watcher, who *actor.PID),
	spawn func(stopped func()) *actor.PID,
) (pid *actor.PID, free bool) {
	d := &Door{system: system, late: late, ended: ended}
	if !d.take(name) {
		return nil, false
	}
	pid = actor.NewPID(system.ProcessRegistry.Address, name)
	to := spawn(func() { d.shut(pid) }) // the actor holds the PID, and with it the door
	process, _ := system.ProcessRegistry.Get(to)
	d.behind.Store(&behind{process, to})
	runtime.AddCleanup(pid, place.leave, place{weak.Make(d), name})
	return pid, true
}

// take adds the door to the system under a name, also in place of a door that is shut.
func (d *Door) take(name string) (free bool) {
	add := func(taken bool, other, _ any) any {
		if old, is := other.(*Door); taken && (!is || !old.isShut.Load()) {
			return other
		}
		return d
	}
	return d.system.ProcessRegistry.LocalPIDs.GetBucket(name).Upsert(name, d, add) == any(d)
}

// place is where a door stands. It does not keep the system in memory, in which subscribers may have the PID.
type place struct {
	door weak.Pointer[Door]
	name string
}

// leave removes the door from its system, unless another process has the name by now.
func (at place) leave() {
	d := at.door.Value()
	if d == nil {
		return // the system is freed
	}
	mine := func(_ string, process any, _ bool) bool { return process == any(d) }
	d.system.ProcessRegistry.LocalPIDs.GetBucket(at.name).RemoveCb(at.name, mine)
}

// shut releases the actor, and notifies the watchers of the door.
func (d *Door) shut(pid *actor.PID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.behind.Store(nil)
	d.isShut.Store(true)
	d.watchers.ForEach(func(_ int, watcher *actor.PID) { d.ended(watcher, pid) })
	d.watchers.Clear()
}

// SendUserMessage forwards a message to the actor, or to late once the actor has stopped.
func (d *Door) SendUserMessage(_ *actor.PID, message any) {
	if to := d.behind.Load(); to != nil {
		to.process.SendUserMessage(to.pid, message)
		return
	}
	d.late(actor.UnwrapEnvelopeMessage(message), actor.UnwrapEnvelopeSender(message))
}

// SendSystemMessage keeps track of watchers, and forwards all other messages to the actor.
func (d *Door) SendSystemMessage(pid *actor.PID, message any) {
	switch msg := message.(type) {
	case *actor.Watch:
		d.watch(pid, msg.Watcher)
	case *actor.Unwatch:
		d.mu.Lock()
		defer d.mu.Unlock()
		d.watchers.Remove(msg.Watcher)
	default:
		if to := d.behind.Load(); to != nil {
			to.process.SendSystemMessage(to.pid, message)
		}
	}
}

// watch adds a watcher, or notifies it at once if the actor has stopped.
func (d *Door) watch(pid, watcher *actor.PID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.behind.Load() == nil {
		d.ended(watcher, pid)
		return
	}
	d.watchers.Add(watcher)
}

// Stop stops the actor.
func (d *Door) Stop(*actor.PID) {
	if to := d.behind.Load(); to != nil {
		to.process.Stop(to.pid)
	}
}
