package faults_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// The supervisor opens a new session, whose counter starts from 1.
func ExampleServer_Expire() {
	shop := open(supervisor.Config{})
	defer shop.close()
	shop.call("count", "book")
	fmt.Println(shop.call("count", "lamp"))
	fmt.Println("expired:", shop.Expire(faults.Expiries()[2]))
	fmt.Println(shop.call("count", "sofa"))
	// Output:
	// 2
	// expired: 1
	// 1
}

func ExampleServer_ExpireSome() {
	shop := open(supervisor.Config{})
	defer shop.close()
	shop.callIn("alice", "count", "book")
	shop.callIn("bob", "count", "book")
	fmt.Println(shop.ExpireSome(1, faults.Expiries()[0]), shop.Sessions())
	// Output: 1 1
}

// The session expires with the call. The call has not run, so the supervisor sends it
// again on a new session.
func ExampleServer_Forget() {
	shop := open(supervisor.Config{})
	defer shop.close()
	shop.call("count", "book")
	shop.Inject("tools/call", faults.Times(1, shop.Forget(faults.Expiries()[0])))
	fmt.Println(shop.call("count", "lamp"))
	fmt.Println(shop.tools.Executions(), shop.Count("initialize"))
	// Output:
	// 1
	// map[book:1 lamp:1] 2
}

// The server does not know a new session at once. The supervisor sends the call again
// on the same session.
func ExampleServer_Late() {
	shop := open(supervisor.Config{})
	defer shop.close()
	shop.Inject("tools/call", shop.Late(100*time.Millisecond, faults.Expiries()[0]))
	fmt.Println(shop.call("count", "book"), shop.Count("initialize"))
	// Output: 1 1
}

// After a restart the server knows no session.
func ExampleServer_Restart() {
	shop := open(supervisor.Config{})
	defer shop.close()
	shop.call("count", "book")
	shop.Restart()
	fmt.Println(shop.call("count/ro", "lamp"))
	// Output: 1
}

// The server keeps its sessions while it is stopped. A call waits for the server.
func ExampleServer_Stop() {
	shop := open(supervisor.Config{})
	defer shop.close()
	shop.call("count", "book")
	shop.Stop()
	answer := make(chan string)
	go func() { answer <- shop.call("count/ro", "lamp") }()
	shop.Start()
	fmt.Println(<-answer)
	// Output: 2
}

// The supervisor never keeps two sessions of a scope.
func ExampleServer_Overlaps() {
	shop := open(supervisor.Config{})
	defer shop.close()
	shop.callIn("alice", "count", "book")
	shop.Expire(faults.Expiries()[0])
	shop.callIn("alice", "count", "lamp")
	fmt.Println(shop.Overlaps())
	// Output: []
}

// A proxy puts faults in front of a server that runs elsewhere.
func ExampleProxy() {
	shop := open(supervisor.Config{})
	defer shop.close()
	proxy, _ := faults.Proxy(shop.URL())
	defer proxy.Close()
	agent := newAgent(mcpbridge.Server{URL: proxy.URL()}, supervisor.Config{})
	defer agent.stop()
	proxy.Inject("tools/call", faults.Times(1, faults.CutAnswer(0)))
	fmt.Println(agent.call("count", "book"))
	fmt.Println(shop.tools.Executions())
	// Output:
	// lost, may have run
	// map[book:1]
}

// A server without a socket runs inside a bubble of testing/synctest, too.
func ExampleLocal() {
	tools := faults.NewTools()
	defer tools.Close()
	server := faults.Local(tools.Handler)
	defer server.Close()
	client := &http.Client{Transport: server}
	agent := newAgent(mcpbridge.Server{URL: server.URL(), HTTPClient: client}, supervisor.Config{})
	defer agent.stop()
	server.Inject("tools/call", faults.Times(1, faults.Cut()))
	fmt.Println(agent.call("count", "book"))
	// Output: lost, may have run
}

// The supervisor repeats a call that was lost only if the tool is read-only.
func ExampleTools_Executions() {
	shop := open(supervisor.Config{})
	defer shop.close()
	shop.Inject("tools/call", faults.Times(1, faults.CutAnswer(0)))
	fmt.Println(shop.call("count/ro", "read"))
	shop.Inject("tools/call", faults.Times(1, faults.CutAnswer(0)))
	fmt.Println(shop.call("count", "write"))
	fmt.Println(shop.tools.Executions())
	// Output:
	// 2
	// lost, may have run
	// map[read:2 write:1]
}
