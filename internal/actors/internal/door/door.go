// Package door puts a process in front of an actor, which answers once the actor has
// stopped.
package door

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// Door is a process that hands what it gets to an actor. Once the actor has stopped,
// it answers by itself, where Proto.Actor would make a dead letter of each message.
// Its PID is watched and stopped like that of the actor. It has no goroutine.
type Door struct {
	system *actor.ActorSystem
	late   func(message any, sender *actor.PID)
	behind atomic.Pointer[behind] // nil once shut

	mu       sync.Mutex // guards watchers, and that nobody is added once shut
	watchers actor.PIDSet
}

// behind is the actor that a door leads to. Its process takes messages for its mailbox
// even when Proto.Actor does not find it any more.
type behind struct {
	process actor.Process
	pid     *actor.PID
}

// Open returns the PID of a door to the actor that spawn spawns. When the actor has
// stopped it calls stopped: from then on late gets the messages. The door stays until
// nobody holds the PID any more.
func Open(system *actor.ActorSystem, prefix string, late func(message any, sender *actor.PID), spawn func(stopped func()) *actor.PID) *actor.PID {
	d := &Door{system: system, late: late}
	pid, _ := system.ProcessRegistry.Add(d, prefix+system.ProcessRegistry.NextId())
	to := spawn(func() { d.shut(pid) }) // the actor holds the PID, and with it the door
	process, _ := system.ProcessRegistry.Get(to)
	d.behind.Store(&behind{process, to})
	runtime.AddCleanup(pid, system.ProcessRegistry.Remove, actor.NewPID(pid.Address, pid.Id))
	return pid
}

// shut lets go of the actor, and tells those who watch the door.
func (d *Door) shut(pid *actor.PID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.behind.Store(nil)
	d.watchers.ForEach(func(_ int, watcher *actor.PID) { d.tell(watcher, pid) })
	d.watchers.Clear()
}

// tell tells a watcher that the actor has stopped.
func (d *Door) tell(watcher, pid *actor.PID) {
	process, _ := d.system.ProcessRegistry.Get(watcher)
	process.SendSystemMessage(watcher, &actor.Terminated{Who: pid})
}

// SendUserMessage hands a message to the actor, or to what answers in its place.
func (d *Door) SendUserMessage(_ *actor.PID, message any) {
	if to := d.behind.Load(); to != nil {
		to.process.SendUserMessage(to.pid, message)
		return
	}
	d.late(actor.UnwrapEnvelopeMessage(message), actor.UnwrapEnvelopeSender(message))
}

// SendSystemMessage keeps watchers, and hands the rest to the actor.
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

// watch adds a watcher, or tells it that it comes too late.
func (d *Door) watch(pid, watcher *actor.PID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.behind.Load() == nil {
		d.tell(watcher, pid)
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
