package bench

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/supervisor"
)

// Dials is the unit of how often somebody has tried to open a session while a server
// was away.
const Dials = "dials/op"

// awayVar names the file whose presence makes a stdio server exit at once.
const awayVar = "BENCH_AWAY"

// ward is a server that goes away and comes back.
type ward struct {
	wire
	away  func() error
	back  func() error
	close func() error
	fresh bool          // its open sessions do not break, and so each round has keys of its own
	retry time.Duration // after which a caller that failed calls again
}

// outage is the time from the return of a server until each of 40 keys has answered
// one caller, who has called again and again since the server went away.
func (p *place) outage() (all []*Case) {
	keys, lengths := 40, []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second, time.Minute}
	if p.cfg.Quick {
		keys, lengths = 8, []time.Duration{time.Second}
	}
	for _, of := range []struct {
		name string
		open func() (*ward, error)
	}{
		{"http-refused", p.refusing}, {"http-503", p.unavailable}, {"stdio", p.exiting},
	} {
		for _, length := range lengths {
			rounds := 3
			if p.cfg.Quick || length >= time.Minute {
				rounds = 1
			}
			all = append(all, &Case{
				Scenario: "outage", Params: params("way", of.name, "away", length), Ops: 1, Rounds: rounds, Cold: true,
				About:    "from the return of the server until the last of the keys works, each with a caller who waits; p50: until half of them do",
				Baseline: nameMutexMap,
				contenders: []contender{
					{nameMutexMap, func(context.Context) (*running, error) {
						s, err := of.open()
						if err != nil {
							return nil, err
						}
						var dials atomic.Int64
						m := newMutexMap(many, func(ctx context.Context) (session, error) {
							dials.Add(1)
							return s.open(ctx)
						})
						return s.outages(keys, length, m.call, dials.Load, m.close), nil
					}},
					{nameClient, func(context.Context) (*running, error) {
						s, err := of.open()
						if err != nil {
							return nil, err
						}
						sup, err := supervise(s.server, supervisor.Config{})
						if err != nil {
							return nil, err
						}
						dials := func() int64 {
							snap, err := sup.client.Inspect(context.Background())
							if err != nil {
								return 0
							}
							return int64(snap.Counters.Dials)
						}
						return s.outages(keys, length, sup.call, dials, sup.close), nil
					}},
				},
			})
		}
	}
	return all
}

// outages lets the server go away and come back.
func (s *ward) outages(keys int, length time.Duration, call func(ctx context.Context, key string) error, dials func() int64, close func() error) *running {
	round := 0
	key := func(i int) string { return fmt.Sprint("key-", round, "-", i) }
	return &running{
		callers: 1,
		close: func() error {
			err := close()
			if failed := s.close(); err == nil {
				err = failed
			}
			return err
		},
		round: func(ctx context.Context, _ int) (Sample, error) {
			ctx, cancel := context.WithTimeout(ctx, length+time.Minute)
			defer cancel()
			var next atomic.Int64
			if s.fresh {
				round++
			} else if err := together(keys, func() error { return call(ctx, key(int(next.Add(1)))) }); err != nil {
				return nil, err
			}
			before := dials()
			if err := s.away(); err != nil {
				return nil, err
			}
			done := make([]time.Time, keys)
			var wg sync.WaitGroup
			for i := range keys {
				wg.Go(func() {
					for ctx.Err() == nil && call(ctx, key(i+1)) != nil {
						pause(ctx, s.retry)
					}
					done[i] = time.Now()
				})
			}
			pause(ctx, length)
			tried := dials() - before
			err := s.back()
			at := time.Now()
			wg.Wait()
			if err != nil {
				return nil, err
			}
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("not all keys work a minute after the return: %w", err)
			}
			took := make([]time.Duration, keys)
			for i, end := range done {
				took[i] = end.Sub(at)
			}
			slices.Sort(took)
			return Sample{NsPerOp: float64(took[keys-1]), P50: float64(quantile(took, 0.5)), Dials: float64(tried)}, nil
		},
	}
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// dialed returns the server at a URL, without the question for a newer protocol.
func (p *place) dialed(url string) wire {
	client := newHTTPClient(256)
	w := p.overHTTP(nameJSON, url, client)
	w.server.HTTPClient, w.server.ProtocolVersion, w.server.NoStream = client, protocolOfHTTP, true
	w.connect = func(ctx context.Context) (*mcp.ClientSession, error) {
		transport := &mcp.StreamableClientTransport{Endpoint: w.url, HTTPClient: client, DisableStandaloneSSE: true}
		return p.client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: protocolOfHTTP})
	}
	return w
}

// incarnation is a server over HTTP, between two restarts.
type incarnation struct {
	http.Handler
	server *mcp.Server
}

func newIncarnation() *incarnation {
	server := newServer()
	of := func(*http.Request) *mcp.Server { return server }
	return &incarnation{mcp.NewStreamableHTTPHandler(of, &mcp.StreamableHTTPOptions{JSONResponse: true}), server}
}

// end forgets all sessions.
func (i *incarnation) end() {
	for s := range i.server.Sessions() {
		s.Close() //nolint:errcheck // it is forgotten
	}
}

// refusing is a server over HTTP whose port is closed while it is away.
func (p *place) refusing() (*ward, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	var server *http.Server
	var current *incarnation
	serve := func(l net.Listener) {
		current = newIncarnation()
		server = &http.Server{Handler: current}
		go server.Serve(l) //nolint:errcheck // it is closed
	}
	end := func() error {
		err := server.Close()
		current.end()
		return err
	}
	serve(l)
	address := l.Addr().String()
	return &ward{
		wire: p.dialed("http://" + address), retry: 100 * time.Millisecond,
		away: end, close: end,
		back: func() error {
			again, err := net.Listen("tcp", address)
			if err == nil {
				serve(again)
			}
			return err
		},
	}, nil
}

// unavailable is a server over HTTP behind a proxy that says 503 while it is away.
func (p *place) unavailable() (*ward, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	var behind atomic.Pointer[incarnation]
	behind.Store(newIncarnation())
	end := func() {
		if gone := behind.Swap(nil); gone != nil {
			gone.end()
		}
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := behind.Load()
		if h == nil {
			http.Error(w, "no backend", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	})}
	go server.Serve(l) //nolint:errcheck // it is closed
	return &ward{
		wire: p.dialed("http://" + l.Addr().String()), retry: 100 * time.Millisecond, fresh: true,
		away:  func() error { end(); return nil },
		back:  func() error { behind.Store(newIncarnation()); return nil },
		close: func() error { end(); return server.Close() },
	}, nil
}

// exiting is a stdio server whose processes end when it goes away, and exit at once
// until it is back.
func (p *place) exiting() (*ward, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	file := filepath.Join(dir, "away")
	w := p.overStdio()
	w.server.Env = map[string]string{awayVar: file}
	w.connect = func(ctx context.Context) (*mcp.ClientSession, error) {
		command := p.command(ModeStdio)
		command.Env = append(os.Environ(), awayVar+"="+file)
		return p.client.Connect(ctx, &mcp.CommandTransport{Command: command}, nil)
	}
	return &ward{
		wire: w, retry: time.Second,
		away: func() error {
			err := os.WriteFile(file, nil, 0o600)
			pause(context.Background(), 10*awayTick) // those that run end
			return err
		},
		back:  func() error { return os.Remove(file) },
		close: func() error { return os.RemoveAll(dir) },
	}, nil
}

// awayTick is how often a stdio server looks whether it is to go away.
const awayTick = 20 * time.Millisecond

// leave ends the process when it is to go away, now or later.
func leave(file string) {
	for {
		if _, err := os.Stat(file); err == nil {
			os.Exit(1)
		}
		time.Sleep(awayTick)
	}
}
