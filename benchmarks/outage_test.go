package benchmarks

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

var away = flag.Duration("away", time.Second, "how long the server of BenchmarkOutage is away")

// flakyServer is a server that leaves and comes back.
type flakyServer struct {
	route
	leave, comeBack func() error
	// survives is set where sessions survive the outage. The keys are new then.
	survives bool
	// retry is how long a caller waits between two calls.
	retry time.Duration
}

// BenchmarkOutage measures the time from the return of a server until each of 40 keys has answered a
// caller, who has repeated the call since the server went away.
func BenchmarkOutage(b *testing.B) {
	for way, start := range map[string]func(*testing.B) *flakyServer{"http-refused": startRefusing, "http-503": startUnavailable, "stdio": startExiting} {
		b.Run(fmt.Sprintf("way=%s/away=%s", way, *away), func(b *testing.B) {
			for _, one := range []contender{{"mutex-map", openMutexMap(unlimited)}, {"mcpactor", openClient(supervisor.Config{})}} {
				b.Run("how="+one.how, func(b *testing.B) {
					server := start(b)
					c, err := one.open(server.route)
					require.NoError(b, err)
					b.Cleanup(c.close)
					before := c.(dialer).dials()
					measureParts(b, func() time.Duration { return server.outage(b, c) })
					b.ReportMetric(float64(c.(dialer).dials()-before)/float64(b.N), "dials/op")
				})
			}
		})
	}
}

// dialer is a client that counts its attempts to open a session.
type dialer interface{ dials() int64 }

// outage takes the server away for some time.
func (s *flakyServer) outage(b *testing.B, c client) time.Duration {
	const keys = 40
	ctx, cancel := context.WithTimeout(context.Background(), *away+time.Minute)
	defer cancel()
	run := 0
	if s.survives {
		run = time.Now().Nanosecond()
	}
	call := func(i int) error { return c.call(ctx, fmt.Sprint("key-", run, "-", i)) }
	if !s.survives { // the sessions are open before the outage
		require.NoError(b, concurrently(keys, keys, call))
	}
	require.NoError(b, s.leave())
	var last time.Time
	var mu sync.Mutex
	answered := make(chan error, 1)
	go func() {
		answered <- concurrently(keys, keys, func(i int) error {
			for ctx.Err() == nil && call(i) != nil {
				time.Sleep(s.retry)
			}
			mu.Lock()
			defer mu.Unlock()
			last = time.Now()
			return ctx.Err()
		})
	}()
	time.Sleep(*away)
	returned, failed := time.Now(), s.comeBack()
	require.NoError(b, errors.Join(failed, <-answered), "not all keys work a minute after the return")
	return last.Sub(returned)
}

// startHTTPServer returns an HTTP server. It is dialed without a question for a newer protocol, and
// without a stream.
func startHTTPServer(b *testing.B) (*flakyServer, *faults.Server) {
	behind := newServer(echo)
	server, err := faults.Serve(func() http.Handler { return handler(behind, true) })
	require.NoError(b, err)
	b.Cleanup(func() {
		server.Close()
		for s := range behind.Sessions() {
			s.Close()
		}
	})
	client := newHTTPClient(256)
	r := overHTTP("http-json", server.URL(), client)
	r.server.HTTPClient, r.server.ProtocolVersion, r.server.NoStream = client, protocolWithSessions, true
	r.open = dialsHTTP(r.server.URL, client, true, protocolWithSessions)
	return &flakyServer{route: r, retry: 100 * time.Millisecond}, server
}

// startRefusing returns an HTTP server whose port is closed while it is away. It comes back without its
// sessions.
func startRefusing(b *testing.B) *flakyServer {
	s, server := startHTTPServer(b)
	s.leave = func() error { server.Stop(); return nil }
	s.comeBack = server.Restart
	return s
}

// startUnavailable returns an HTTP server that answers 503 while it is away.
func startUnavailable(b *testing.B) *flakyServer {
	s, server := startHTTPServer(b)
	var end func()
	s.survives = true
	s.leave = func() error {
		end = server.Inject("", faults.Refuse(http.StatusServiceUnavailable, "no backend"))
		return nil
	}
	s.comeBack = func() error { end(); return nil }
	return s
}

// startExiting returns a stdio server whose processes exit at once while it is away.
func startExiting(b *testing.B) *flakyServer {
	file := filepath.Join(b.TempDir(), "exit")
	return &flakyServer{
		route: overStdio("", file), retry: time.Second,
		leave: func() error {
			err := os.WriteFile(file, nil, 0o600)
			time.Sleep(10 * exitPoll) // running processes exit
			return err
		},
		comeBack: func() error { return os.Remove(file) },
	}
}
