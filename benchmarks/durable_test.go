package benchmarks

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
)

// durable is a client whose calls have records.
type durable struct {
	*supervised
	end func() error
	ids atomic.Int64
}

func (d *durable) call(ctx context.Context, key string) error {
	return d.supervised.call(messages.WithDurable(ctx, strconv.FormatInt(d.ids.Add(1), 10)), key)
}

func (d *durable) close() {
	d.supervised.close()
	if err := d.end(); err != nil {
		panic(err)
	}
}

// openDurable returns openers of clients whose calls have records in a store.
func openDurable(open func() (mcpbridge.Store, func() error)) opener {
	return func(r route) (client, error) {
		store, end := open()
		s, err := supervise(r, supervisor.Config{CallStore: store})
		return &durable{supervised: s, end: end}, err
	}
}

// BenchmarkDurable measures what the record of a call costs, beside a call without: two writes and a read.
func BenchmarkDurable(b *testing.B) {
	inMemory := func() (mcpbridge.Store, func() error) { return new(resume.Memory), func() error { return nil } }
	inFile := func() (mcpbridge.Store, func() error) {
		file, err := resume.Open(filepath.Join(b.TempDir(), "calls.db"), resume.Config{})
		require.NoError(b, err)
		return file, file.Close
	}
	for _, r := range routes() {
		if r.server.URL == "" {
			continue
		}
		for _, callers := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("transport=%s/callers=%d", r.name, callers), func(b *testing.B) {
				compare(b, r, []contender{
					{"mcpactor", openClient(supervisor.Config{})}, {"durable-memory", openDurable(inMemory)}, {"durable-file", openDurable(inFile)},
				}, func(b *testing.B, c client) { measureCalls(b, callers, c) })
			})
		}
	}
}
