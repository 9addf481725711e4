//go:build linux

package calls

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

var (
	calls = flag.Int("calls", 400, "how many calls TestCallsRunOnce makes, half of them in each of its set-ups")
	seed  = flag.Uint64("seed", 0, "the seed of what is killed and when; 0 is a random one. The scheduling is not repeated")
)

// roleVar is an environment variable with which this test binary is one of the programs. Its value is a role.
const roleVar = "MCPACTOR_TEST_ROLE"

// role says which program runs.
type role struct {
	Kind   string `json:"kind"` // a key of programs
	Addr   string `json:"addr"` // of the MCP server
	Ledger string `json:"ledger,omitempty"`
	File   string `json:"file,omitempty"`  // of the store
	Redis  string `json:"redis,omitempty"` // the address of the store
}

// The kinds of programs.
const (
	serverKind     = "server"
	supervisorKind = "supervisor"
	bareKind       = "bare"
)

// programs are what the test binary runs as a program.
var programs = map[string]func(role) error{
	serverKind: runServer, supervisorKind: runSupervisor, bareKind: runBare,
}

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
	run, known := programs[r.Kind]
	if !known {
		return fmt.Errorf("there is no program %q", r.Kind)
	}
	return run(r)
}

// The modes of an ask.
const (
	durableMode = "durable"
	proposeMode = "propose"
	answerMode  = "answer"
)

// ask is a line that a program reads: it makes the call, proposes it, or answers that it may be sent.
type ask struct {
	Number int    `json:"number"` // of the ask: the reply has it
	ID     string `json:"id"`
	N      int    `json:"n"` // what the call writes into the ledger
	Mode   string `json:"mode"`
	Digest string `json:"digest,omitempty"` // of what was proposed
}

// told is a line that a program writes, as the reply to an ask.
type told struct {
	Number     int    `json:"number"`
	Text       string `json:"text,omitempty"` // the result
	Code       string `json:"code,omitempty"` // why there is none
	Detail     string `json:"detail,omitempty"`
	MayHaveRun bool   `json:"mayHaveRun,omitempty"`
	Digest     string `json:"digest,omitempty"` // of the call that waits for an answer
}

// answerAsks reads asks, and writes what a function tells of each. It calls the function in a goroutine for each ask.
func answerAsks(tell func(ask) told) error {
	var mu sync.Mutex
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var a ask
		switch err := in.Decode(&a); err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
		go func() {
			t := tell(a)
			t.Number = a.Number
			mu.Lock()
			defer mu.Unlock()
			if err := out.Encode(t); err != nil {
				os.Exit(1)
			}
		}()
	}
}
