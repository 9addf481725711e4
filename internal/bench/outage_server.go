package bench

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/mcpactor/mcpactor/tests/faults"
)

// flakyServer is a server that leaves and comes back.
type flakyServer struct {
	route
	leave    func() error
	comeBack func() error
	close    func()
	// survives is set where sessions survive the outage. Each outage is measured with
	// new keys then.
	survives bool
	// retry is how long a caller waits between two calls.
	retry time.Duration
}

// startFlakyHTTP returns an HTTP server. It is dialed without a question for a newer
// protocol, and without a stream.
func (p *setup) startFlakyHTTP() (*flakyServer, *faults.Server, error) {
	behind := newServer(echo)
	server, err := faults.Serve(func() http.Handler { return overHTTP(behind, true) })
	if err != nil {
		return nil, nil, err
	}
	client := newHTTPClient(256)
	r := p.overHTTP(nameJSON, server.URL(), client)
	r.server.HTTPClient, r.server.ProtocolVersion, r.server.NoStream = client, protocolWithSessions, true
	r.open = p.opensHTTP(r.server.URL, client, true, protocolWithSessions)
	return &flakyServer{route: r, retry: 100 * time.Millisecond, close: func() {
		server.Close()
		for s := range behind.Sessions() {
			s.Close() //nolint:errcheck // its client has gone
		}
	}}, server, nil
}

// startRefusing returns an HTTP server whose port is closed while it is away. It comes
// back without its sessions.
func (p *setup) startRefusing() (*flakyServer, error) {
	s, server, err := p.startFlakyHTTP()
	if err != nil {
		return nil, err
	}
	s.leave = func() error { server.Stop(); return nil }
	s.comeBack = server.Restart
	return s, nil
}

// startUnavailable returns an HTTP server that answers 503 while it is away.
func (p *setup) startUnavailable() (*flakyServer, error) {
	s, server, err := p.startFlakyHTTP()
	if err != nil {
		return nil, err
	}
	var end func()
	s.survives = true
	s.leave = func() error {
		end = server.Inject("", faults.Refuse(http.StatusServiceUnavailable, "no backend"))
		return nil
	}
	s.comeBack = func() error { end(); return nil }
	return s, nil
}

// exitFileVar names the file whose existence makes a stdio server exit.
const exitFileVar = "BENCH_EXIT_FILE"

// exitPoll is how often a stdio server looks for the file.
const exitPoll = 20 * time.Millisecond

// exitWhenExists ends the process as soon as a file exists.
func exitWhenExists(file string) {
	for {
		if _, err := os.Stat(file); err == nil {
			os.Exit(1)
		}
		time.Sleep(exitPoll)
	}
}

// startExiting returns a stdio server whose processes exit at once while it is away.
func (p *setup) startExiting() (*flakyServer, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	file := filepath.Join(dir, "exit")
	return &flakyServer{
		route: p.overStdio(map[string]string{exitFileVar: file}), retry: time.Second,
		leave: func() error {
			err := os.WriteFile(file, nil, 0o600)
			time.Sleep(10 * exitPoll) // running processes exit
			return err
		},
		comeBack: func() error { return os.Remove(file) },
		close:    func() { os.RemoveAll(dir) }, //nolint:errcheck // it is a temporary directory
	}, nil
}
