//go:build real

package real

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ledger is a server whose only tool is not idempotent: it writes an entry into a file.
var ledger = serverProgram{script: "../servers/ledger.mjs", transports: []serverTransport{stdio, {name: "http", path: "/mcp"}}}

// entry is a call of a client that has an answer.
type entry struct {
	name, said string
	isError    bool
}

// 20 clients write into ledgers, whose processes are killed again and again. Nothing is written twice, what is said to be
// written is, and what is said not to have run is not. In the end mcpactor serve itself is killed, and nothing is left of it.
func TestNothingRunsTwiceUnlessTheModelIsTold(t *testing.T) {
	const clients, kills = 20, 4
	for name, connect := range map[string]func(h *harness, file string) []otherClient{
		"each with a serve of its own": func(h *harness, file string) []otherClient {
			return startTypeScript(h, 1, clients, h.served(h.serve("s", ledgerInto(file), ledger.transports[0])))
		},
		"one serve for all": func(h *harness, file string) []otherClient {
			return startTypeScript(h, 1, clients, h.listened(h.serve("s", ledgerInto(file), ledger.transports[0])))
		},
		"one serve, one server for all": func(h *harness, file string) []otherClient {
			to := h.listened(h.serve("s", ledgerInto(file), ledger.transports[1]))
			return append(startTypeScript(h, 1, clients/2, to), startTypeScript(h, 2, clients/2, to)...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.limit = time.Now().Add(4 * time.Minute)
			file := filepath.Join(h.dir, "ledger")
			all := connect(h, file)
			require.Len(t, all, clients)
			var mu sync.Mutex
			var entries []entry
			note := func(e entry) {
				mu.Lock()
				defer mu.Unlock()
				entries = append(entries, e)
			}
			stop := make(chan struct{})
			var writers sync.WaitGroup
			for number, c := range all {
				writers.Go(func() {
					for i := 0; ; i++ {
						select {
						case <-stop:
							return
						default:
						}
						e := entry{name: fmt.Sprintf("%d-%d", number, i)}
						e.said, e.isError = c.call("write", arguments{"entry": e.name, "before": 30, "after": 30})
						note(e)
					}
				})
			}
			for range kills {
				mu.Lock()
				before := len(entries)
				mu.Unlock()
				h.eventually("the clients write", func() bool {
					mu.Lock()
					defer mu.Unlock()
					return len(entries) >= before+3*clients
				})
				h.kill(h.running())
				h.restartServers()
			}
			close(stop)
			writers.Wait()
			h.verifyLedger(file, entries)
			h.killServe(all)
		})
	}
}

// ledgerInto returns a ledger that writes into a file.
func ledgerInto(file string) serverProgram {
	r := ledger
	r.env = map[string]string{"LEDGER": file}
	return r
}

// verifyLedger compares what the clients were told with what was written.
func (h *harness) verifyLedger(file string, entries []entry) {
	h.t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(h.t, err)
	written := map[string]int{}
	for line := range strings.Lines(string(data)) {
		written[strings.TrimSpace(line)]++
	}
	told, refused := 0, 0
	for _, e := range entries {
		n := written[e.name]
		require.LessOrEqual(h.t, n, 1, "%s was written %d times: %s", e.name, n, e.said)
		switch {
		case !e.isError:
			require.Equal(h.t, 1, n, "%s was not written: %s", e.name, e.said)
		case strings.Contains(e.said, "may have run"):
			told++
		default:
			require.Contains(h.t, e.said, "did not run", e.name)
			require.Zero(h.t, n, "%s was written: %s", e.name, e.said)
			refused++
		}
		delete(written, e.name)
	}
	require.Empty(h.t, written, "entries that nobody has asked for")
	h.t.Logf("%d calls: %d may have run, %d did not run", len(entries), told, refused)
	require.Positive(h.t, told, "the kills hit no call")
}

// killServe kills mcpactor serve while each client has a call, and waits until nothing is left of its servers.
func (h *harness) killServe(all []otherClient) {
	h.t.Helper()
	var calls sync.WaitGroup
	for _, c := range all {
		calls.Go(func() { c.call("write", arguments{"entry": "never", "before": 600_000, "after": 0}) })
	}
	<-time.After(300 * time.Millisecond)
	left := func() []process {
		return slices.DeleteFunc(allButClients(), func(p process) bool {
			return slices.ContainsFunc(h.remotes, func(r *remote) bool { return p.pid == r.pid() })
		})
	}
	before, began := left(), time.Now()
	require.NotEmpty(h.t, before)
	h.signalServe(syscall.SIGKILL)
	h.eventually("all are gone", func() bool { return len(left()) == 0 && allEnded(before) })
	h.t.Logf("%d processes were gone after %v", len(before), time.Since(began).Round(10*time.Millisecond))
	for _, c := range all {
		c.leave()
	}
	calls.Wait()
}
