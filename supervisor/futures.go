package supervisor

import (
	"runtime"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/actors"
	"github.com/mcpactor/mcpactor/messages"
)

// target is the PID that clients send commands to, and what these clients share.
type target struct {
	system  *actor.ActorSystem
	pid     *actor.PID
	done    <-chan struct{}     // closed when the supervisor has stopped; nil if that is not known
	outputs outputLists         // of typed calls
	futures chan *actors.Future // kept for reuse
}

func newTarget(system *actor.ActorSystem, pid *actor.PID, done <-chan struct{}) *target {
	return &target{system, pid, done, newOutputLists(), make(chan *actors.Future, maxFutures)}
}

// NewClient returns a client for the PID of a supervisor, or of a member of a cluster, in an actor
// system. It does what that of [Supervisor.Client] does. If no actor has the PID, commands fail
// with [messages.CodeClosed]. Keep the client: it has futures and output schemas for reuse.
func NewClient(system *actor.ActorSystem, pid *actor.PID) *Client {
	if system == nil || pid == nil {
		return &Client{}
	}
	t := newTarget(system, pid, nil)
	runtime.AddCleanup(t, closeAll, t.futures)
	return &Client{t}
}

// maxFutures bounds the futures that are kept for reuse.
const maxFutures = 64

// future returns a future for one reply. One that receives notifications is not reused.
func (t *target) future(notes chan<- messages.Notification) *actors.Future {
	if notes == nil {
		select {
		case box := <-t.futures:
			return box
		default:
		}
	}
	return actors.NewFuture(t.system, notes)
}

// release takes back a future. Only one that has received its reply may be reused:
// otherwise the reply could be taken for that of another command.
func (t *target) release(box *actors.Future, again bool) {
	if again {
		select {
		case t.futures <- box:
			if t.stopped() {
				t.closeFutures()
			}
			return
		default:
		}
	}
	box.Close()
}

// stopped reports whether the supervisor is known to have stopped.
func (t *target) stopped() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// closeFutures closes the futures that are kept.
func (t *target) closeFutures() { closeAll(t.futures) }

// closeAll closes the futures in a channel.
func closeAll(futures chan *actors.Future) {
	for {
		select {
		case box := <-futures:
			box.Close()
		default:
			return
		}
	}
}
