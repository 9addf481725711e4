package gateway

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/mcpactor/mcpactor/gateway/internal/view"
	"github.com/mcpactor/mcpactor/internal/listfile"
	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/messages"
)

// note changes the record of a client, and returns what change does: whether it has changed something. If so, the record is
// written soon. To wait for that, see keep and keepBriefly.
func (c *client) note(change func(r *record) bool) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed = change(&c.record)
	if changed && c.store() != nil && !c.hasLeft && !c.unwritten {
		c.unwritten = true
		go c.keep()
	}
	return changed
}

// store is where the record is kept, or nil if the client cannot return.
func (c *client) store() *ClientStore {
	if c.offer.isHere() || c.isStateless && c.kept == "" {
		return nil
	}
	return c.g.cfg.Clients
}

// writeTime is how long a call waits until the record that it has changed is written.
const writeTime = 100 * time.Millisecond

// keepBriefly is keep for a call. It does not wait for a folder that hangs.
func (c *client) keepBriefly() { briefly(c.keep) }

// briefly waits for something that may take long.
func briefly(write func()) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		write()
	}()
	select {
	case <-written:
	case <-time.After(writeTime):
	}
}

// keep writes the record, unless it is written with all that was noted before.
func (c *client) keep() {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	if !c.unwritten {
		c.mu.Unlock()
		return
	}
	c.unwritten = false
	data, err := json.Marshal(&c.record)
	c.mu.Unlock()
	if err == nil {
		err = c.g.cfg.Clients.save(c.kept, data)
	}
	if err != nil {
		c.g.log.Warn().Str("scope", c.scope).Err(err).Msg("client was not kept: a restart ends it")
	}
}

// release leaves the record to another connection of the client, unless the client has left for good: then it is removed.
func (c *client) release(forGood bool) {
	clients := c.store()
	if clients == nil {
		return
	}
	c.mu.Lock()
	c.hasLeft = true
	c.unwritten = c.unwritten && !forGood
	c.mu.Unlock()
	c.keep()
	if !forGood {
		clients.touch(c.kept)
		return
	}
	if err := clients.remove(c.kept); err != nil {
		c.g.log.Warn().Str("scope", c.scope).Err(err).Msg("client was not forgotten")
	}
}

// keepView keeps what the client is shown, if it can return. It waits until that is written, so that a kill after the answer loses nothing,
// but not for a folder that hangs.
func (c *client) keepView(tools []view.Tool) {
	if c.store() == nil {
		return
	}
	briefly(func() { c.writeView(tools) })
}

// writeView writes what a client is shown, unless it is shown something else by now, or has left: then the file is that of another
// connection, or is removed.
func (c *client) writeView(tools []view.Tool) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	hasLeft := c.hasLeft
	c.mu.Unlock()
	if hasLeft || !c.view.IsShown(tools) {
		return
	}
	data, err := view.Encode(tools)
	if err == nil {
		err = c.store().saveView(c.kept, data)
	}
	if err != nil {
		c.g.log.Warn().Str("scope", c.scope).Err(err).Msg("list of tools of a client was not kept: a restart may change it")
	}
}

// forgetView forgets what is kept of what the client was shown.
func (c *client) forgetView() {
	if c.store() == nil {
		return
	}
	if err := listfile.Remove(c.store().viewFile(c.kept)); err != nil {
		c.g.log.Warn().Str("scope", c.scope).Err(err).Msg("list of tools of a client was not forgotten")
	}
}

// readView makes a client that returns one that was shown what it was shown.
func (c *client) readView() {
	data, err := os.ReadFile(c.store().viewFile(c.kept))
	if err != nil {
		return // it was shown nothing
	}
	if tools, ok := view.Decode(data); ok {
		c.view.Restore(tools)
	}
}

// catchUp tells a client that has returned what may have changed while it was away, and subscribes for it again.
func (c *client) catchUp(watched map[string]string) {
	for _, changed := range []string{"tools", "prompts", "resources"} {
		if changed == "tools" && c.view.Has() { // it is told if they have
			for _, s := range c.servers() {
				s.lists["tools/list"].take([32]byte{})
			}
			continue
		}
		c.Notify("notifications/"+changed+"/list_changed", nil, nil)
	}
	for _, s := range c.servers() {
		go s.subscribeAgain(watched)
	}
}

// subscribeAgain subscribes to the resources of the server that the client has watched.
func (s *served) subscribeAgain(watched map[string]string) {
	c := s.c
	for uri, server := range watched {
		if server != s.name || !c.watches(uri, server) { // the client may have unsubscribed meanwhile
			continue
		}
		if _, err := c.g.do.Do(c.ctx, &messages.Subscribe{Header: s.header(24 * time.Hour), URI: uri}); err != nil {
			c.g.log.Debug().Str("scope", c.scope).Str("server", server).Err(err).Msg("resource was not subscribed to again")
			continue
		}
		c.Notify("notifications/resources/updated", map[string]string{"uri": uri}, nil)
	}
}

// sweepEvery is the time between two sweeps.
const sweepEvery = time.Hour

// sweepClients forgets old clients from time to time, until ctx ends.
func (g *Gateway) sweepClients(ctx context.Context) {
	for {
		if err := g.sweep(ctx); err != nil && ctx.Err() == nil {
			g.log.Warn().Err(err).Msg("old clients were not forgotten")
		}
		select {
		case <-time.After(sweepEvery):
		case <-ctx.Done():
			return
		}
	}
}

// sweep forgets old clients, and closes stored sessions that belong to no client. A record is written before the client's first
// session. So a session in the store, listed before the records are read, belongs to nobody if no record has its scope.
func (g *Gateway) sweep(ctx context.Context) error {
	keys, err := g.cfg.Sessions.Keys(ctx)
	if err != nil {
		return err
	}
	here := map[string]bool{}
	for _, c := range g.everybody() {
		here[c.scope] = true
	}
	known, err := g.cfg.Clients.sweep(here, time.Now())
	if err != nil {
		return err
	}
	for _, tools := range g.offers.Load().servers {
		known[tools.Scope] = true
	}
	for _, key := range keys {
		if known[key.Scope] || !recordkey.IsOfSession(key) {
			continue
		}
		if _, err := g.do.Do(ctx, &messages.CloseSession{Key: key, Now: true}); err != nil {
			g.log.Debug().Str("scope", key.Scope).Str("server", key.Server).Err(err).Msg("session of a former client was not closed")
		}
		if err := g.cfg.Sessions.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}
