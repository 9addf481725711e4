package bench

import (
	"context"
	"net/http"
	"strconv"

	"github.com/mcpactor/mcpactor/supervisor"
)

// idle is the memory of sessions that nobody uses, on the client's side: what a
// supervisor, or a map, takes by itself is not in it.
func (p *place) idle() (all []*Case) {
	sessions := 300
	if p.cfg.Quick {
		sessions = 20
	}
	for _, stream := range []bool{true, false} {
		client := newHTTPClient(256) // whose connections are all of this case
		w, with := p.overHTTP(nameJSON, p.origin+pathJSON, client), "with"
		if !stream {
			w.connect, with = p.withoutStream(client), "without"
		}
		w.server.NoStream = !stream
		all = append(all, &Case{
			Scenario: "idle", Params: params("transport", w.name, "stream", with), Unit: BytesPerSession, Ops: sessions, Rounds: 5,
			About: "memory of an idle session on the client's side, heap and stacks", Baseline: nameBare,
			contenders: []contender{
				{nameBare, func(context.Context) (*running, error) {
					return p.weighed(BytesPerSession, func() (load, error) { return w.holdBare(client), nil }), nil
				}},
				{nameMutexMap, func(context.Context) (*running, error) {
					return p.weighed(BytesPerSession, func() (load, error) {
						m := newMutexMap(many, w.open)
						return load{openAll(m.call), func() error {
							defer client.CloseIdleConnections()
							return m.close()
						}}, nil
					}), nil
				}},
				{nameClient, func(context.Context) (*running, error) {
					return p.weighed(BytesPerSession, func() (load, error) {
						s, err := supervise(w.server, supervisor.Config{MaxSessions: sessions})
						if err != nil {
							return load{}, err
						}
						return load{openAll(s.call), s.close}, nil
					}), nil
				}},
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
