package faults_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// A fault of your own looks at a request, and calls the server or answers itself.
func ExampleFault() {
	shop := open(supervisor.Config{})
	defer shop.close()
	sessions := map[string]bool{}
	shop.Inject("tools/call", func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
		sessions[r.Session] = true
		next.ServeHTTP(w, r.Request)
	})
	fmt.Println(shop.call("count", "book"), shop.call("count", "lamp"))
	fmt.Println("sessions:", len(sessions))
	// Output:
	// 1 2
	// sessions: 1
}

func ExampleRefuse() {
	shop := open(supervisor.Config{})
	defer shop.close()
	remove := shop.Inject("tools/call", faults.Refuse(500, "out of memory"))
	fmt.Println(shop.call("count", "book"))
	remove()
	fmt.Println(shop.call("count", "book"))
	fmt.Println(shop.tools.Executions())
	// Output:
	// server_error, may have run
	// 1
	// map[book:1]
}

func ExampleRefuseFor() {
	shop := open(supervisor.Config{})
	defer shop.close()
	shop.Inject("tools/call", faults.RefuseFor(7, 429, "slow down"))
	fmt.Println(shop.call("count", "book"))
	// Output: rate_limited
}

func ExampleHang() {
	shop := open(supervisor.Config{CallTimeout: time.Second})
	defer shop.close()
	shop.Inject("tools/call", faults.Hang())
	fmt.Println(shop.call("count", "book"))
	fmt.Println(shop.tools.Executions())
	// Output:
	// deadline, may have run
	// map[]
}

func ExampleDelay() {
	shop := open(supervisor.Config{})
	defer shop.close()
	shop.Inject("tools/call", faults.Delay(50*time.Millisecond))
	began := time.Now()
	fmt.Println(shop.call("count", "book"), time.Since(began) >= 50*time.Millisecond)
	// Output: 1 true
}

// The client cannot know that the server did not get the request.
func ExampleCut() {
	shop := open(supervisor.Config{})
	defer shop.close()
	shop.Inject("tools/call", faults.Times(1, faults.Cut()))
	fmt.Println(shop.call("count", "book"))
	fmt.Println(shop.tools.Executions())
	// Output:
	// lost, may have run
	// map[]
}

func ExampleCutAnswer() {
	shop := open(supervisor.Config{})
	defer shop.close()
	shop.Inject("tools/call", faults.Times(1, faults.CutAnswer(10)))
	fmt.Println(shop.call("count", "book"))
	fmt.Println(shop.tools.Executions())
	// Output:
	// lost, may have run
	// map[book:1]
}

func ExampleTimes() {
	shop := open(supervisor.Config{})
	defer shop.close()
	shop.Inject("tools/call", faults.Times(2, faults.Refuse(500, "out of memory")))
	for range 3 {
		fmt.Println(shop.call("count", "book"))
	}
	// Output:
	// server_error, may have run
	// server_error, may have run
	// 1
}

// The seed decides which of the requests meet the fault.
func ExampleSometimes() {
	shop := open(supervisor.Config{})
	defer shop.close()
	shop.Inject("tools/call", faults.Sometimes(1, 0.5, faults.Refuse(429, "slow down")))
	for range 6 {
		fmt.Println(shop.call("count", "book"))
	}
	// Output:
	// rate_limited
	// rate_limited
	// 1
	// rate_limited
	// 2
	// rate_limited
}

// The server refuses one call in the form of an expired session. The session has not
// expired: the supervisor finds this out, and keeps the session.
func ExampleRefuse_session() {
	shop := open(supervisor.Config{})
	defer shop.close()
	shop.call("count", "book")
	shop.Inject("tools/call", faults.Times(1, faults.Refuse(400, "Invalid or missing session ID")))
	fmt.Println(shop.call("count", "lamp"))
	fmt.Println(shop.call("count", "lamp"))
	// Output:
	// invalid, may have run
	// 2
}

// The fault has a name, as in a table of tests.
func ExampleNamed() {
	shop := open(supervisor.Config{})
	defer shop.close()
	fault, err := faults.Named("lost after run")
	if err != nil {
		panic(err)
	}
	shop.Inject("tools/call", faults.Times(1, fault))
	fmt.Println(shop.call("count", "book"))
	fmt.Println(shop.tools.Executions())
	// Output:
	// lost, may have run
	// map[book:1]
}
