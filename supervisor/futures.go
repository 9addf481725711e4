package supervisor

import (
	"runtime"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

// target is the PID that clients send commands to, and what these clients share.
type target struct {
	system  *actor.ActorSystem
	pid     *actor.PID
	done    <-chan struct{} // closed when the supervisor has stopped; nil if that is not known
	outputs outputLists     // of typed calls
	kept    *futures
}

func newTarget(system *actor.ActorSystem, pid *actor.PID, done <-chan struct{}) *target {
	return &target{system: system, pid: pid, done: done, outputs: newOutputLists(), kept: new(futures)}
}

// NewClient returns a client for the PID of a supervisor, or of a member of a cluster, in an actor
// system. It does what that of [Supervisor.Client] does. If no actor has the PID, commands fail
// with [messages.CodeClosed]. Keep the client: it has futures and output schemas for reuse.
func NewClient(system *actor.ActorSystem, pid *actor.PID) *Client {
	if system == nil || pid == nil {
		return &Client{}
	}
	t := newTarget(system, pid, nil)
	runtime.AddCleanup(t, (*futures).close, t.kept)
	return &Client{t}
}

// future returns a future for one reply. One that receives notifications is not reused.
func (t *target) future(notes chan<- messages.Notification) *protocol.Future {
	if notes == nil {
		if box := t.kept.take(); box != nil {
			return box
		}
	}
	return protocol.NewFuture(t.system, notes)
}

// release takes back a future. Only one that has received its reply may be reused:
// otherwise the reply could be taken for that of another command.
func (t *target) release(box *protocol.Future, again bool) {
	if !again || !t.kept.put(box) {
		box.Close()
	}
}

// maxFutures bounds the futures that are kept for reuse.
const maxFutures = 64

// futures are kept for reuse. They are in no channel, because a channel that was made in a bubble
// of testing/synctest cannot be used by the cleanup of [NewClient].
type futures struct {
	mu     sync.Mutex
	free   []*protocol.Future
	closed bool
}

// take returns a future, or nil if none is kept.
func (f *futures) take() *protocol.Future {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := len(f.free) - 1
	if last < 0 {
		return nil
	}
	box := f.free[last]
	f.free = f.free[:last]
	return box
}

// put keeps a future, and reports whether there was room.
func (f *futures) put(box *protocol.Future) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || len(f.free) == maxFutures {
		return false
	}
	f.free = append(f.free, box)
	return true
}

// close closes the futures. From then on, none is kept.
func (f *futures) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, box := range f.free {
		box.Close()
	}
	f.free, f.closed = nil, true
}
