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

// mood is how an agent fares, for people to see.
type mood int32

const (
	resting  mood = iota // between two calls
	waiting              // for an answer
	restored             // its last call was replayed, or its state was gone
	failed               // its last call failed, and it was told
	finished
)

// agent is an actor that works in a scope of its own: it calls tools on one
// server, one call after the other, until it is told to finish.
//
//	resting ──next──▶ waiting ──reply──▶ resting … ──finish──▶ finished
type agent struct {
	number     int
	server     string
	supervisor *actor.PID
	ledger     *ledger
	random     *rand.Rand
	pause      time.Duration
	done       func()

	mood       *atomic.Int32 // for the view
	calls      int
	generation uint64      // of its session, as far as it has noticed
	timer      *time.Timer // sends next; nil before the first rest
	ending     bool
}

type (
	next   struct{} // time for another call
	finish struct{} // no more calls
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
		a.ledger.replied(msg)
		a.mood.Store(int32(failed))
		a.rest(c)
	case *finish:
		a.ending = true
		if a.timer.Stop() {
			a.rest(c)
		}
	}
}

// call sends one call: three of four change the session's state.
func (a *agent) call(c actor.Context) {
	a.calls++
	id := fmt.Sprintf("%d-%d", a.number, a.calls)
	tool := "add"
	if a.random.IntN(4) == 0 {
		tool = "total"
	}
	op := &messages.CallTool{
		Header: messages.To(a.server, fmt.Sprint("agent-", a.number)),
		Params: &mcp.CallToolParams{Name: tool, Arguments: toolArgs{Call: id}},
	}
	op.ID = id
	a.ledger.sent(id, tool == "total")
	a.mood.Store(int32(waiting))
	c.Request(a.supervisor, op)
}

// onResult notices whether the state of the session is still there.
func (a *agent) onResult(c actor.Context, msg *messages.ToolResult) {
	a.ledger.replied(msg)
	fares := resting
	if msg.Replayed || a.generation > 0 && msg.Generation > a.generation {
		fares = restored
	}
	a.generation = msg.Generation
	a.mood.Store(int32(fares))
	a.rest(c)
}

// rest waits until it is time for the next call.
func (a *agent) rest(c actor.Context) {
	if a.ending {
		a.mood.Store(int32(finished))
		a.done()
		return
	}
	pause := a.pause/2 + time.Duration(a.random.Int64N(int64(a.pause)))
	if a.random.IntN(12) == 0 { // it thinks, and others use its slot
		pause *= 20
	}
	root, self := c.ActorSystem().Root, c.Self()
	a.timer = time.AfterFunc(pause, func() { root.Send(self, &next{}) })
}
