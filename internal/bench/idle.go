package bench

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"time"

	"github.com/mcpactor/mcpactor/supervisor"
)

// The units of memory.
const (
	bytesPerSession = "B/session"
	goroutines      = "goroutines/session"
)

// idle is the memory of sessions that nobody uses, in the client's process. What a
// supervisor or a map takes by itself does not count.
func (p *setup) idle() (all []*benchCase) {
	sessions := p.size(1000, 20)
	for _, stream := range []string{"with", "without"} {
		client := newHTTPClient(256) // whose connections are all of this case
		r := p.overHTTP(nameJSON, p.origin+pathJSON, client)
		r.server.NoStream = stream == "without"
		r.open = p.opensHTTP(r.server.URL, client, r.server.NoStream, "")
		held := func(open opener) starter {
			return func(context.Context) (*running, error) {
				return &running{close: func() error { return nil }, round: func(ctx context.Context, n int) (sample, error) {
					defer client.CloseIdleConnections()
					return p.hold(ctx, n, r, open)
				}}, nil
			}
		}
		all = append(all, &benchCase{
			name: "idle/transport=" + nameJSON + "/stream=" + stream, ops: sessions, rounds: 5,
			contenders: []contender{
				{bareName, held(openBare)},
				{mutexMapName, held(openMutexMap(unlimited))},
				{clientName, held(openClient(supervisor.Config{MaxSessions: sessions}))},
			},
		})
	}
	return all
}

// hold measures what n sessions add to the memory of the process.
func (p *setup) hold(ctx context.Context, n int, r route, open opener) (s sample, err error) {
	c, err := open(r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if s, ok := c.(*supervised); ok && !p.cfg.Quick {
		s.growTables()
	}
	before := p.usage()
	for i := range n {
		if err := c.call(ctx, strconv.Itoa(i)); err != nil {
			return nil, err
		}
	}
	s = p.usage()
	for unit := range s {
		s[unit] = (s[unit] - before[unit]) / float64(n)
	}
	return s, nil
}

// usage returns what the process holds after its activity has ended: goroutines that
// wait for more work have exited, and their stacks are free.
func (p *setup) usage() sample {
	pause := time.Duration(p.size(150, 10)) * time.Millisecond // longer than a goroutine waits for more work
	for began, before := time.Now(), -1; before != runtime.NumGoroutine() && time.Since(began) < 3*time.Second; {
		before = runtime.NumGoroutine()
		time.Sleep(pause)
		runtime.GC()
	}
	for range 5 { // finalizers free more, and each collection halves stacks that are too large
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return sample{bytesPerSession: float64(m.HeapAlloc + m.StackInuse), goroutines: float64(runtime.NumGoroutine())}
}
