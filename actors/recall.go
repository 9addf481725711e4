package actors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// recall is what a session remembers across restarts of our own process, in the
// store that the user gave; without one, nothing. Its methods may block. What goes
// wrong with the store is logged, and no reason not to serve.
type recall struct {
	cfg *Config
	key messages.Key
}

// load returns the record of the session, or nil.
func (r recall) load() (known *mcpbridge.Record) {
	r.try("load", func(ctx context.Context) (err error) {
		known, err = r.cfg.Store.Load(ctx, r.key)
		return err
	})
	if known == nil || !known.Valid() {
		return nil
	}
	return known
}

// save remembers a session, or that there is none that could be resumed.
func (r recall) save(conn mcpbridge.Conn, generation uint64) {
	resume := conn.Resume()
	if resume == nil {
		r.forget()
		return
	}
	record := &mcpbridge.Record{Resume: *resume, Generation: generation}
	r.try("save", func(ctx context.Context) error { return r.cfg.Store.Save(ctx, r.key, record) })
}

// forget forgets the session.
func (r recall) forget() {
	r.try("delete", func(ctx context.Context) error { return r.cfg.Store.Delete(ctx, r.key) })
}

func (r recall) try(what string, f func(context.Context) error) {
	if r.cfg.Store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.cfg.CloseTimeout)
	defer cancel()
	began := time.Now()
	if err := attempt(ctx, "the store", f); err != nil {
		r.cfg.Logger.Warn().Str("server", r.key.Server).Str("scope", r.key.Scope).
			Stringer("elapsed", time.Since(began)).Err(err).Msg("store failed to " + what)
	}
}

// maxEnding bounds how many remembered sessions are ended at once.
const maxEnding = 16

// forgotten is the end of ending the sessions that nobody has used since our restart.
type forgotten struct {
	of    *tally
	ended int
	left  []messages.Left
}

// end ends the sessions that are remembered, and were not used since our restart:
// those of the keys that match. A close command waits for it.
func (r *registry) end(c actor.Context, t *tally, match func(messages.Key) bool) {
	if r.cfg.Store == nil {
		return
	}
	used := make(map[messages.Key]bool, len(r.children))
	for _, ch := range r.children {
		used[ch.key] = true
	}
	cfg, known := r.cfg, r.servers
	t.recalling = true
	r.retrying++
	r.cfg.work(c, func() any {
		ctx, cancel := context.WithTimeout(context.Background(), 2*cfg.CloseTimeout)
		defer cancel()
		done := &forgotten{of: t}
		var keys []messages.Key
		recall{cfg: cfg}.try("list", func(ctx context.Context) (err error) {
			keys, err = cfg.Store.Keys(ctx)
			return err
		})
		results := make(chan messages.Left)
		var waiting int
		slots := make(chan struct{}, maxEnding)
		for _, key := range keys {
			if !match(key) || used[key] {
				continue
			}
			waiting++
			configured := known[key.Server] != nil
			go func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				results <- messages.Left{Key: key, Reason: recall{cfg, key}.end(ctx, configured)}
			}()
		}
		for range waiting {
			if left := <-results; left.Reason != "" {
				done.left = append(done.left, left)
			} else {
				done.ended++
			}
		}
		return done
	})
}

// end ends one session on its server, and returns why it could not. It is forgotten
// in any case, and before: nobody is to go on with it.
func (r recall) end(ctx context.Context, configured bool) (reason string) {
	known := r.load()
	r.forget()
	if known == nil || !configured {
		return ""
	}
	req := mcpbridge.DialRequest{Key: r.key, Resume: &known.Resume, Only: true, Down: func(*mcpbridge.Error) {}}
	conn, err := dial(ctx, r.cfg.Dialer, req)
	if err == nil {
		err = closing(r.cfg.CloseTimeout, conn.Close)
	}
	if e := mcpbridge.AsError(err); e != nil && e.Session != mcpbridge.Gone {
		return "the session of before our restart: " + e.Error()
	}
	return ""
}

// onForgotten goes on with the close command.
func (r *registry) onForgotten(c actor.Context, msg *forgotten) {
	r.retrying--
	if _, ok := r.tallies[msg.of]; ok {
		msg.of.recalling = false
		msg.of.reply.Sessions += msg.ended
		msg.of.reply.Left = append(msg.of.reply.Left, msg.left...)
		r.settle(c, msg.of)
	}
	r.stopIfEmpty(c)
}
