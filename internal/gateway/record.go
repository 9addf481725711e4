package gateway

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/mcpactor/mcpactor/internal/mcpserver"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// record is what is known of a client apart from its connection. With it, another connection is the same client, also in another
// process.
type record struct {
	Scope    string            `json:"scope"`              // random: no other client ever has it
	Said     json.RawMessage   `json:"said"`               // the parameters of initialize
	LogLevel string            `json:"logLevel,omitempty"` // that the client has set
	Watched  map[string]string `json:"watched,omitempty"`  // the servers of the resources that it has subscribed to, by URI
	State    map[string]uint64 `json:"state,omitempty"`    // the generations of the sessions that may have state of it, by server
}

// note changes the record of a client, and keeps it if change reports that it has changed something.
func (c *client) note(change func(r *record) bool) {
	c.keeping.Lock()
	defer c.keeping.Unlock()
	c.mu.Lock()
	if !change(&c.record) || c.g.cfg.Clients == nil || c.hasLeft {
		c.mu.Unlock()
		return
	}
	data, err := json.Marshal(&c.record)
	c.mu.Unlock()
	if err == nil {
		err = c.g.cfg.Clients.save(c.ID, data)
	}
	if err != nil {
		c.g.log.Warn().Str("scope", c.scope).Err(err).Msg("client was not kept: a restart ends it")
	}
}

// release leaves the record to another connection of the client, unless the client has left for good: then it is removed.
func (c *client) release(forGood bool) {
	c.keeping.Lock()
	defer c.keeping.Unlock()
	c.hasLeft = true
	if !forGood || c.g.cfg.Clients == nil {
		return
	}
	if err := c.g.cfg.Clients.remove(c.ID); err != nil {
		c.g.log.Warn().Str("scope", c.scope).Err(err).Msg("client was not forgotten")
	}
}

// Return returns the handler of a client that has been away, also since before this process started, or nil if its id is not
// known.
func (g *Gateway) Return(from *mcpserver.Client) mcpserver.Handler {
	if g.cfg.Clients == nil {
		return nil
	}
	known, err := g.cfg.Clients.find(from.ID)
	if err != nil {
		g.log.Warn().Err(err).Msg("client was not found")
	}
	if known == nil {
		return nil
	}
	c := g.accept(from)
	c.record, c.scope = *known, known.Scope
	capabilities, err := c.introduce(known.Said)
	if err == nil {
		err = g.open(c, capabilities)
	}
	if err != nil {
		g.log.Warn().Str("scope", c.scope).Err(err).Msg("client could not return")
		return nil
	}
	c.initialized()
	go c.catchUp(maps.Clone(known.Watched))
	return c
}

// catchUp tells a client that has returned of what may have changed while nobody told it, and subscribes for it again.
func (c *client) catchUp(watched map[string]string) {
	for _, changed := range []string{"tools", "prompts", "resources"} {
		c.Notify("notifications/"+changed+"/list_changed", nil, nil)
	}
	for uri, server := range watched {
		s := c.server(server)
		if s == nil { // it is no longer configured
			continue
		}
		if _, err := c.g.do.Do(c.ctx, &messages.Subscribe{Header: s.header(24 * time.Hour), URI: uri}); err != nil {
			c.g.log.Debug().Str("scope", c.scope).Str("server", server).Err(err).Msg("resource was not subscribed to again")
			continue
		}
		c.Notify("notifications/resources/updated", map[string]string{"uri": uri}, nil)
	}
}

// sweepEvery is how often clients that have not been there for long are forgotten.
const sweepEvery = time.Hour

// sweepClients forgets clients that have not been there for long, until ctx ends.
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

// sweep forgets old clients, and closes stored sessions that belong to no client. A client is stored before its sessions: so the
// keys of sessions are listed first, and then the clients.
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
	for _, tools := range g.cfg.Tools {
		known[tools.Scope] = true
	}
	for _, key := range keys {
		if known[key.Scope] || mcpbridge.IsListKey(key) || mcpbridge.IsCallKey(key) {
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
