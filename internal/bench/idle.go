package bench

import (
	"context"
	"net/http"
	"os"
	"strconv"

	"github.com/mcpactor/mcpactor/supervisor"
)

// idle is the memory of sessions that nobody uses, on the client's side: what a
// supervisor, or a map, takes by itself is not in it. Stdio servers are processes on
// that side as well: they are weighed, where the system says what they weigh.
func (p *place) idle() (all []*Case) {
	sessions, processes := 1000, 24
	if p.cfg.Quick {
		sessions, processes = 20, 3
	}
	over := p.overStdio()
	for _, of := range []struct {
		transport, stream string
		n                 int
	}{{nameJSON, "with", sessions}, {nameJSON, "without", sessions}, {over.name, "with", processes}} {
		w, client := over, newHTTPClient(256) // whose connections are all of this case
		if of.transport == nameJSON {
			w = p.overHTTP(nameJSON, p.origin+pathJSON, client)
		}
		if of.stream == "without" {
			w.connect, w.server.NoStream = p.withoutStream(client), true
		}
		weighed := func(prepare func() (load, error)) func(context.Context) (*running, error) {
			return func(context.Context) (*running, error) {
				if _, err := pssOf(os.Getpid()); err != nil && w.url == "" {
					return nil, errNotThere
				}
				return p.weighed(BytesPerSession, prepare), nil
			}
		}
		all = append(all, &Case{
			Scenario: "idle", Params: params("transport", w.name, "stream", of.stream), Unit: BytesPerSession, Ops: of.n, Rounds: 5,
			About: "memory of an idle session in the client's process, heap and stacks", Baseline: nameBare,
			contenders: []contender{
				{nameBare, weighed(func() (load, error) { return w.holdBare(client), nil })},
				{nameMutexMap, weighed(func() (load, error) {
					m := newMutexMap(many, w.open)
					return load{openAll(m.call), func() error {
						defer client.CloseIdleConnections()
						return m.close()
					}}, nil
				})},
				{nameClient, weighed(func() (load, error) {
					s, err := supervise(w.server, supervisor.Config{MaxSessions: of.n})
					if err != nil {
						return load{}, err
					}
					s.fill()
					return load{openAll(s.call), s.close}, nil
				})},
			},
		})
	}
	return all
}

// openAll returns what opens n sessions by calling on each.
func openAll(call func(ctx context.Context, key string) error) func(context.Context, int) error {
	return func(ctx context.Context, n int) error {
		for i := range n {
			if err := call(ctx, strconv.Itoa(i)); err != nil {
				return err
			}
		}
		return nil
	}
}

// holdBare keeps sessions of the SDK.
func (w wire) holdBare(client *http.Client) load {
	var kept []session
	return load{
		hold: openAll(func(ctx context.Context, _ string) error {
			s, err := w.open(ctx)
			if err != nil {
				return err
			}
			kept = append(kept, s)
			return s.call(ctx)
		}),
		release: func() error {
			for _, s := range kept {
				s.close() //nolint:errcheck // it is not measured
			}
			kept = nil
			client.CloseIdleConnections()
			return nil
		},
	}
}
