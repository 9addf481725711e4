//go:build handles && linux

package handles

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/freeport"
)

// run is a run of agents.
type run struct {
	name    string
	agents  int
	bound   string
	counted bool
	drops   int
	// In the middle the platform is killed, and another one is started: a quarter of the agents does not come back, and there are as many new ones.
	killsPlatform bool
	// In the middle the server is killed, and started again.
	killsServer bool
}

// runs returns the runs of some agents.
func runs(agents int) []run {
	all := []run{
		{name: "no declaration", bound: undeclared},
		{name: "no declaration, kill -9 of the platform", bound: undeclared, killsPlatform: true},
		{name: "declared", bound: declared},
		{name: "Max is learned", bound: learned},
		{name: "10 % of the answers are lost", bound: declared, drops: 10},
		{name: "kill -9 of the platform", bound: declared, killsPlatform: true},
		{name: "kill -9 of the server", bound: declared, killsServer: true},
		{name: "1, 2, 3", bound: declared, counted: true},
		{name: "1, 2, 3, kill -9 of the server", bound: declared, counted: true, killsServer: true},
		{name: "1, 2, 3, kill -9 of the platform", bound: declared, counted: true, killsPlatform: true},
	}
	if agents > 64 { // what is left after the last one keeps its place: the others would take minutes
		all = all[:len(all)-1]
	}
	return all
}

// Agents share 16 handles, and half of them never release theirs. With a declaration all are served, and nothing is left.
func TestHandlesEndWithTheirAgents(t *testing.T) {
	var figures []figure
	for number := range strings.SplitSeq(*agents, ",") {
		n, err := strconv.Atoi(number)
		require.NoError(t, err)
		for _, r := range runs(n) {
			r.agents = n
			t.Run(number+" agents, "+r.name, func(t *testing.T) {
				f := r.figure(t)
				figures = append(figures, f)
				require.NoError(t, f.check())
			})
		}
	}
	t.Logf("\n%s", table(figures))
}

// figure runs the agents.
func (r run) figure(t *testing.T) figure {
	dir := t.TempDir()
	addr, err := freeport.Addr("127.0.0.1")
	require.NoError(t, err)
	began := time.Now()
	serverRole := role{Kind: serverKind, Addr: addr, Counted: r.counted, Drops: r.drops}
	server := startProcess(t, dir, serverRole)
	seen := func() counts { return ask(t, addr, "/counts") }
	seen()
	platformRole := role{Kind: platformKind, Addr: addr, Life: 1, File: filepath.Join(dir, "store"), Bound: r.bound, Agents: r.agents}
	platform := startProcess(t, dir, platformRole)
	f := figure{run: r}
	switch {
	case r.killsPlatform:
		inTheMiddle(t, r, seen)
		platform.kill()
		ask(t, addr, "/killed?life=1")
		f.before = seen().Held
		platformRole.Life = 2
		platform = startProcess(t, dir, platformRole)
	case r.killsServer:
		f.before = inTheMiddle(t, r, seen)
		f.first = seen()
		server.kill()
		server = startProcess(t, dir, serverRole)
	}
	var said bool
	select {
	case f.report, said = <-platform.said:
	case <-time.After(2 * patience):
	}
	log, err := os.ReadFile(filepath.Join(dir, platformKind+".log"))
	require.NoError(t, err)
	require.True(t, said, "the platform says nothing: %s", log)
	f.counts = f.first.plus(seen())
	platform.end(t)
	f.atEnd = seen().Held
	server.end(t)
	f.took = time.Since(began)
	log, err = os.ReadFile(filepath.Join(dir, platformKind+".log"))
	require.NoError(t, err)
	require.Empty(t, string(log), "what the race detector finds is here")
	return f
}

// inTheMiddle waits until the agents have minted half of what they will, and hold some. It returns how many they hold.
func inTheMiddle(t *testing.T, r run, seen func() counts) (held int) {
	t.Helper()
	half := r.agents / 2
	if r.bound == undeclared {
		half = capacity
	}
	require.Eventually(t, func() bool {
		c := seen()
		held = c.Held
		return c.Minted >= half && held >= capacity/2
	}, patience, time.Millisecond)
	return held
}

// ask asks the server, as soon as it listens.
func ask(t *testing.T, addr, path string) (c counts) {
	t.Helper()
	require.Eventually(t, func() bool {
		resp, err := client.Get("http://" + addr + path)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return path != "/counts" || json.NewDecoder(resp.Body).Decode(&c) == nil
	}, patience, 5*time.Millisecond)
	return c
}

// client keeps no connections to a server that will be killed.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
