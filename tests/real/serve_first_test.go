//go:build real

package real

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// slowLedger is the ledger, which does not read before a time has passed.
func slowLedger(delay time.Duration, file string) serverProgram {
	program := ledgerInto(file)
	program.script, program.args = "../servers/slow.mjs", []string{strconv.FormatInt(delay.Milliseconds(), 10)}
	return program
}

// listingOnce are kinds of clients that list when they have connected, and not again.
var listingOnce = map[string]func(h *harness, to target) *clientProgram{
	"typescript": func(h *harness, to target) *clientProgram {
		return launchClients(h, []string{"node", installed(h.t, "../clients/typescript.mjs")}, map[string]any{"sdk": 1, "clients": 1}, to)
	},
	"typescript 2": func(h *harness, to target) *clientProgram {
		return launchClients(h, []string{"node", installed(h.t, "../clients/typescript.mjs")}, map[string]any{"sdk": 2, "clients": 1}, to)
	},
	"ai-sdk":    launchFramework("ai-sdk"),
	"langchain": launchFramework("langchain"),
}

func launchFramework(name string) func(h *harness, to target) *clientProgram {
	return func(h *harness, to target) *clientProgram {
		return launchClients(h, []string{newerNode(h.t), installed(h.t, "../clients/frameworks.mjs")}, map[string]any{"framework": name}, to)
	}
}

// firstUse returns what a client connects to that uses servers for the first time: there is no cache.
func (h *harness) firstUse(name string, args ...string) target {
	return target{
		command: append([]string{h.mcpactor(), "serve"}, args...),
		env:     map[string]string{"XDG_CACHE_HOME": filepath.Join(h.dir, "cache "+name), "HOME": h.dir},
	}
}

// several returns what a client connects to that uses a file with two servers for the first time.
func (h *harness) several(name string, slow, quick mcpbridge.Server) target {
	h.t.Helper()
	servers := map[string]any{}
	for key, s := range map[string]mcpbridge.Server{"slow": slow, "quick": quick} {
		servers[key] = map[string]any{"command": s.Command, "args": s.Args, "env": s.Env}
	}
	data, err := json.Marshal(map[string]any{"mcpServers": servers})
	require.NoError(h.t, err)
	file := filepath.Join(h.dir, name+".json")
	require.NoError(h.t, os.WriteFile(file, data, 0o600))
	return h.firstUse(name, "--wait", "50s", "--config", file) // all clients here wait for 60 s
}

// firstUse is a client that uses a server for the first time.
type firstUse struct {
	*clientProgram
	tool, ledger string
}

// The first use of a server that takes long to start: each client connects, its only list has all tools, and its call runs. So it is
// with mcpactor serve in front of the server, in front of two, and with one that listens for all. With -short the server takes 9 s at most,
// and nobody listens.
func TestFirstUseOfASlowServerWorks(t *testing.T) {
	for _, delay := range []time.Duration{2 * time.Second, 9 * time.Second, 25 * time.Second, 40 * time.Second} {
		if testing.Short() && delay > 9*time.Second {
			continue
		}
		t.Run(delay.String(), func(t *testing.T) {
			h := newHarness(t)
			h.mcpactor()
			h.limit = time.Now().Add(4 * time.Minute)
			uses := map[string]firstUse{}
			listens, all := filepath.Join(h.dir, "listen.ledger"), target{}
			if !testing.Short() {
				all = h.listened(h.serve("slow", slowLedger(delay, listens), stdio))
			}
			for kind, launch := range listingOnce {
				file := filepath.Join(h.dir, kind+".ledger")
				slow := h.serve("slow", slowLedger(delay, file), stdio)
				one := h.firstUse("one "+kind, append([]string{"--", slow.Command}, slow.Args...)...)
				one.env["LEDGER"] = file
				uses["one "+kind] = firstUse{launch(h, one), "write", file}
				if testing.Short() && delay < 9*time.Second {
					continue
				}
				if !testing.Short() && kind != "langchain" { // it does not end its session, for which the server would stay
					uses["listen "+kind] = firstUse{launch(h, all), "write", listens}
				}
				quick := h.serve("quick", ledgerInto(file+".quick"), stdio)
				uses["two "+kind] = firstUse{launch(h, h.several("two "+kind, slow, quick)), "slow__write", file}
			}
			for name, u := range uses {
				u.awaitConnected()
				c := &programClient{u.clientProgram, 0}
				listed := c.list("tools/list")
				require.Contains(t, listed, `"`+u.tool+`"`, name)
				require.Equal(t, u.tool != "write", strings.Contains(listed, `"quick__write"`), name)
				said, isError := c.call(u.tool, arguments{"entry": name, "before": 0, "after": 0})
				require.False(t, isError, "%s: %s", name, said)
				written, err := os.ReadFile(u.ledger)
				require.NoError(t, err)
				require.Equal(t, 1, strings.Count(string(written), name+"\n"))
			}
		})
	}
}
