package faults_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// hooked returns an agent with hooks around everything that its sessions do.
func hooked(hooks faults.Hooks) *agent {
	server := mcpbridge.Server{InMemory: faults.NewTools().Server()}
	return newAgent(server, hooks.Config(supervisor.Config{BackoffBase: time.Millisecond, BackoffMax: 10 * time.Millisecond}))
}

// The first dial fails. The supervisor dials again.
func ExampleHooks_beforeDial() {
	var dials atomic.Int32
	agent := hooked(faults.Hooks{
		BeforeDial: func(context.Context, messages.Key) error {
			if dials.Add(1) == 1 {
				return errors.New("no route to host")
			}
			return nil
		},
	})
	defer agent.stop()
	fmt.Println(agent.call("count", "book"), dials.Load())
	// Output: 1 2
}

// Each connection breaks before the call is sent, so the call has not run.
func ExampleHooks_beforeCall() {
	agent := hooked(faults.Hooks{
		BeforeCall: func(_ context.Context, _ messages.Key, op messages.Operation) error {
			if op.Method() != "tools/call" {
				return nil
			}
			return &mcpbridge.Error{Class: mcpbridge.NotSent, Session: mcpbridge.Broken}
		},
	})
	defer agent.stop()
	fmt.Println(agent.call("count", "book"))
	// Output: unavailable
}

// The call runs, and its result is lost.
func ExampleHooks_afterCall() {
	agent := hooked(faults.Hooks{
		AfterCall: func(_ context.Context, _ messages.Key, op messages.Operation, result messages.Result, err error) (messages.Result, error) {
			if op.Method() != "tools/call" {
				return result, err
			}
			return nil, &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Sent: true}
		},
	})
	defer agent.stop()
	fmt.Println(agent.call("count", "book"))
	// Output: lost, may have run
}

// The connection cannot be closed. The reply says which session is left.
func ExampleHooks_beforeClose() {
	var stuck atomic.Bool
	agent := hooked(faults.Hooks{
		BeforeClose: func(context.Context, messages.Key) error {
			if stuck.Load() {
				return errors.New("disk full")
			}
			return nil
		},
	})
	defer agent.stop()
	agent.call("count", "book")
	stuck.Store(true)
	closed, _ := agent.sup.Client().CloseAll(context.Background())
	fmt.Println(len(closed.Left), closed.Left[0].Key)
	stuck.Store(false)
	// Output: 1 s/default
}
