package main

import (
	"errors"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// agent plays a scenario: it sends one command after the other, each when it has the
// reply to the one before.
type agent struct {
	sessions *actor.PID // of the supervisor
	scenario scenario
	done     chan<- error // has room for how it ends

	todo []messages.Command // what is not sent yet
}

// Receive takes the replies.
func (a *agent) Receive(c actor.Context) {
	switch msg := c.Message().(type) {
	case *actor.Started:
		a.todo = a.scenario.first
		a.next(c)
	case *messages.Failure:
		a.onFailure(c, msg)
	case messages.Result:
		a.onResult(c, msg)
	}
}

// onFailure ends the scenario, well if that is what it is about.
func (a *agent) onFailure(c actor.Context, f *messages.Failure) {
	if a.scenario.refused {
		c.Logger().Info("refused", "failure", f.Error())
		a.end(c, nil)
		return
	}
	a.end(c, f)
}

// onResult does what the scenario makes of a result.
func (a *agent) onResult(c actor.Context, result messages.Result) {
	if a.scenario.then != nil {
		more, err := a.scenario.then(result)
		if err != nil {
			a.end(c, err)
			return
		}
		a.todo = append(more, a.todo...)
	}
	a.next(c)
}

func (a *agent) next(c actor.Context) {
	switch {
	case len(a.todo) > 0:
		var command messages.Command
		command, a.todo = a.todo[0], a.todo[1:]
		c.Request(a.sessions, command)
	case a.scenario.refused:
		a.end(c, errors.New("nothing was refused"))
	default:
		a.end(c, nil)
	}
}

func (a *agent) end(c actor.Context, err error) {
	a.done <- err
	c.Stop(c.Self())
}

// user is who servers ask: it accepts every form, and fills it in alike.
type user struct {
	form map[string]any
}

// Receive takes the requests.
func (u *user) Receive(c actor.Context) {
	switch c.Message().(type) {
	case *messages.Elicit:
		c.Respond(&messages.Elicited{Result: &mcp.ElicitResult{Action: "accept", Content: u.form}})
	case *messages.Sample:
		c.Respond(&messages.Sampled{Result: &mcp.CreateMessageWithToolsResult{
			Model: "none", Role: "assistant", Content: []mcp.Content{&mcp.TextContent{Text: "I do not know."}},
		}})
	case *messages.ListRoots:
		c.Respond(&messages.Roots{})
	}
}
