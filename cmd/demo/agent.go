package main

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// status is the state of an agent, as the screen shows it.
type status int32

const (
	resting  status = iota // between two calls
	waiting                // for a reply
	restored               // the last call was replayed, or its session was rebuilt
	failed                 // the last call failed
	finished
)

// agent is an actor that calls tools on one server, one after the other, in a scope of its
// own, until it gets finish.
//
//	resting ──next──▶ waiting ──reply──▶ resting … ──finish──▶ finished
type agent struct {
	number     int
	server     string
	supervisor *actor.PID
	verifier   *verifier
	random     *rand.Rand
	pause      time.Duration
	done       func()

	status     *atomic.Int32 // for the screen
	calls      int
	generation uint64      // of the session, in the last result
	timer      *time.Timer // sends next; nil before the first rest
	ending     bool
}

type (
	next   struct{} // starts the next call
	finish struct{} // ends the agent after its last reply
)

// Receive makes calls and takes replies.
func (a *agent) Receive(c actor.Context) {
	switch msg := c.Message().(type) {
	case *actor.Started:
		a.rest(c)
	case *next:
		if a.ending {
			a.rest(c)
			return
		}
		a.call(c)
	case *messages.ToolResult:
		a.onResult(c, msg)
	case *messages.Failure:
		a.verifier.replied(msg)
		a.status.Store(int32(failed))
		a.rest(c)
	case *finish:
		a.ending = true
		if a.timer.Stop() {
			a.rest(c)
		}
	}
}

// call sends one call. Three calls of four change the state of the session.
func (a *agent) call(c actor.Context) {
	a.calls++
	id := fmt.Sprintf("%d-%d", a.number, a.calls)
	tool := "add"
	if a.random.IntN(4) == 0 {
		tool = "total"
	}
	op := &messages.CallTool{
		Header: messages.To(a.server, fmt.Sprint("agent-", a.number)),
		Params: &mcp.CallToolParams{Name: tool, Arguments: counterArguments{Call: id}},
	}
	op.ID = id
	a.verifier.sent(id, tool == "total")
	a.status.Store(int32(waiting))
	c.Request(a.supervisor, op)
}

// onResult records a result. A new generation says that the session was rebuilt.
func (a *agent) onResult(c actor.Context, msg *messages.ToolResult) {
	a.verifier.replied(msg)
	status := resting
	if msg.Replayed || a.generation > 0 && msg.Generation > a.generation {
		status = restored
	}
	a.generation = msg.Generation
	a.status.Store(int32(status))
	a.rest(c)
}

// rest waits for a random time before the next call.
func (a *agent) rest(c actor.Context) {
	if a.ending {
		a.status.Store(int32(finished))
		a.done()
		return
	}
	pause := a.pause/2 + time.Duration(a.random.Int64N(int64(a.pause)))
	if a.random.IntN(12) == 0 { // a long pause, in which other sessions use the slot
		pause *= 20
	}
	root, self := c.ActorSystem().Root, c.Self()
	a.timer = time.AfterFunc(pause, func() { root.Send(self, &next{}) })
}
