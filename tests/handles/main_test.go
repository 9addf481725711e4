//go:build handles && linux

package handles

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var agents = flag.String("agents", "64", "how many agents there are: each number is a set of runs")

// roleVar is an environment variable with which this test binary is one of the programs. Its value is a role.
const roleVar = "MCPACTOR_TEST_ROLE"

// role says which program runs, and how.
type role struct {
	Kind string `json:"kind"`
	Addr string `json:"addr"` // of the server

	// Of the server.
	Counted bool `json:"counted,omitempty"` // its handles are 1, 2, 3, or else 32 characters
	Drops   int  `json:"drops,omitempty"`   // in a hundred: answers of open and close that are lost

	// Of the platform.
	Life   int    `json:"life,omitempty"`  // how many there were before, and it
	File   string `json:"file,omitempty"`  // of its store
	Bound  string `json:"bound,omitempty"` // undeclared, declared or learned
	Agents int    `json:"agents,omitempty"`
}

// The kinds of programs.
const (
	serverKind   = "server"
	platformKind = "platform"
)

// What a platform knows of handles.
const (
	undeclared = "undeclared"
	declared   = "declared" // with Max
	learned    = "learned"  // the errors of the server teach Max
)

func TestMain(m *testing.M) {
	if text := os.Getenv(roleVar); text != "" {
		fmt.Fprintln(os.Stderr, runRole(text))
		os.Exit(1)
	}
	flag.Parse()
	status := m.Run()
	if err := goleak.Find(); status == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// runRole runs a program, until it fails or its input ends.
func runRole(text string) error {
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	switch r.Kind {
	case serverKind:
		return runServer(r)
	case platformKind:
		return runPlatform(r)
	}
	return fmt.Errorf("there is no program %q", r.Kind)
}

// inputEnds waits until the test ends this program, or has ended itself.
func inputEnds() { io.Copy(io.Discard, os.Stdin) }

// pause waits.
func pause(d time.Duration) { <-time.After(d) }
