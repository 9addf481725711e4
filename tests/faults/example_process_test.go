//go:build unix

package faults_test

import (
	"fmt"
	"os"
	"time"

	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// started returns a process with a trait, and an agent that starts it. The test program
// calls [faults.Main] first in its TestMain.
func started(trait faults.Trait, cfg supervisor.Config) (process *faults.Process, agent *agent, stop func()) {
	dir, err := os.MkdirTemp("", "faults")
	if err != nil {
		panic(err)
	}
	process = faults.NewProcess(dir, trait)
	server, err := process.Server("s")
	if err != nil {
		panic(err)
	}
	agent = newAgent(server, cfg)
	return process, agent, func() {
		agent.stop()
		os.RemoveAll(dir)
	}
}

// The process exits during a call. The next call gets a new process.
func ExampleProcess() {
	process, agent, stop := started("", supervisor.Config{})
	defer stop()
	fmt.Println(agent.call("exit", "book"))
	fmt.Println(agent.call("count", "lamp"))
	fmt.Println(process.Executions())
	// Output:
	// lost, may have run
	// 1
	// map[book:1 lamp:1] <nil>
}

// A line that is no JSON-RPC is skipped.
func ExampleProcess_garble() {
	_, agent, stop := started("", supervisor.Config{})
	defer stop()
	fmt.Println(agent.call("garble", "book"))
	fmt.Println(agent.call("count", "lamp"))
	// Output:
	// done
	// 1
}

// The process writes half a message and exits.
func ExampleProcess_half() {
	_, agent, stop := started("", supervisor.Config{})
	defer stop()
	fmt.Println(agent.call("half", "book"))
	fmt.Println(agent.call("count", "lamp"))
	// Output:
	// lost, may have run
	// 1
}

// The process ignores SIGTERM. Stop kills it.
func ExampleTrait_stubborn() {
	_, agent, stop := started(faults.Stubborn, supervisor.Config{CloseTimeout: 200 * time.Millisecond})
	fmt.Println(agent.call("count", "book"))
	stop()
	// Output: 1
}

// The process exits before it has answered.
func ExampleTrait_dies() {
	_, agent, stop := started(faults.Dies, supervisor.Config{FailFast: true})
	defer stop()
	fmt.Println(agent.call("count", "book"))
	// Output: unavailable
}

// The process never answers.
func ExampleTrait_mute() {
	_, agent, stop := started(faults.Mute, supervisor.Config{FailFast: true, ConnectTimeout: 200 * time.Millisecond})
	defer stop()
	fmt.Println(agent.call("count", "book"))
	// Output: unavailable
}

// The process answers with text.
func ExampleTrait_babbling() {
	_, agent, stop := started(faults.Babbling, supervisor.Config{FailFast: true, ConnectTimeout: 200 * time.Millisecond})
	defer stop()
	fmt.Println(agent.call("count", "book"))
	// Output: unavailable
}

// The process speaks a version of the protocol that the client does not know.
func ExampleTrait_antique() {
	_, agent, stop := started(faults.Antique, supervisor.Config{FailFast: true})
	defer stop()
	fmt.Println(agent.call("count", "book"))
	// Output: protocol
}
