package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// agent is an actor that calls tools, one after the other, in a scope of its own, until it
// gets finish.
//
//	resting ──next──▶ waiting ──reply──▶ resting … ──finish──▶ finished
type agent struct {
	number   int
	member   *actor.PID
	verifier *verifier
	done     func()

	calls  int
	timer  *time.Timer // sends next; nil before the first rest
	ending bool
}

type (
	next   struct{} // starts the next call
	finish struct{} // ends the agent after its last reply
)

// pauseTime is how long an agent rests between two calls, in the mean.
const pauseTime = 100 * time.Millisecond

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
	case messages.Reply:
		a.verifier.replied(msg)
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
	if rand.IntN(4) == 0 {
		tool = "total"
	}
	op := &messages.CallTool{
		Header: messages.To("web", fmt.Sprint("agent-", a.number)),
		Params: &mcp.CallToolParams{Name: tool, Arguments: counterArguments{Call: id}},
	}
	op.ID = id
	a.verifier.sent(op)
	c.Request(a.member, op)
}

// rest waits for a random time before the next call.
func (a *agent) rest(c actor.Context) {
	if a.ending {
		a.done()
		return
	}
	pause := pauseTime/2 + rand.N(pauseTime)
	if rand.IntN(12) == 0 { // a long pause, in which other sessions use the slot
		pause *= 20
	}
	root, self := c.ActorSystem().Root, c.Self()
	a.timer = time.AfterFunc(pause, func() { root.Send(self, &next{}) })
}
