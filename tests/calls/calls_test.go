//go:build linux

package calls

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/freeport"
)

// setup is programs and their store.
type setup struct {
	name     string
	kind     string
	programs int
	redis    bool // their store is Redis, or else a file
}

// Programs and their server are killed at any moment, and their store is cut off. No call runs twice, and what is said of calls is true.
func TestCallsRunOnce(t *testing.T) {
	chosen := *seed
	if chosen == 0 {
		chosen = rand.Uint64()
	}
	t.Logf("-seed %d", chosen)
	var columns []column
	for _, s := range []setup{
		{name: "one program, a file", kind: supervisorKind, programs: 1},
		{name: "two programs, Redis", kind: supervisorKind, programs: 2, redis: true},
		{name: "maps, one retry", kind: bareKind, programs: 2},
	} {
		t.Run(s.name, func(t *testing.T) {
			c := s.run(t, rand.New(rand.NewPCG(chosen, uint64(len(columns)))))
			columns = append(columns, c)
			if s.kind == bareKind {
				return
			}
			require.NoError(t, c.verdict.check())
		})
	}
	t.Logf("with %d processors:\n%s", runtime.NumCPU(), table(columns))
}

// run runs the calls in the set-up.
func (s setup) run(t *testing.T, dice *rand.Rand) column {
	dir := t.TempDir()
	addr, err := freeport.Addr("127.0.0.1")
	require.NoError(t, err)
	d := &driver{isBare: s.kind == bareKind, isTwice: s.redis}
	serverRole := role{Kind: serverKind, Addr: addr, Ledger: filepath.Join(dir, "ledger")}
	d.ledger, err = openLedger(serverRole.Ledger)
	require.NoError(t, err)
	defer d.ledger.file.Close()
	d.server = started(t, dir, serverRole)
	r := role{Kind: s.kind, Addr: addr}
	switch {
	case s.redis:
		server := miniredis.RunT(t)
		d.store, err = newWire(server.Addr())
		require.NoError(t, err)
		t.Cleanup(d.store.close)
		r.Redis = d.store.addr()
	case !d.isBare:
		r.File = filepath.Join(dir, "store")
	}
	for range s.programs {
		d.slots = append(d.slots, started(t, dir, r))
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute+time.Duration(*calls)*25*time.Millisecond)
	defer cancel()
	outcomes, done, err := d.run(ctx, *calls/2, dice)
	require.NoError(t, err)
	_, err = d.ledger.runsOf(0)
	require.NoError(t, err)
	log, err := os.ReadFile(filepath.Join(dir, s.kind+".log"))
	require.NoError(t, err)
	require.Empty(t, string(log), "what the race detector finds is here")
	return column{name: s.name, verdict: judge(outcomes, d.ledger.runs), kills: done, took: time.Since(began)}
}

// started starts a program, and the next ones in its place. The last one ends with the test.
func started(t *testing.T, dir string, r role) *slot {
	s, err := startSlot(dir, r)
	require.NoError(t, err)
	t.Cleanup(func() { s.current().kill() })
	return s
}
