package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// linger continues the first starts of servers after the client has left, so that the next client finds their lists. It
// closes all other sessions of the client.
func (c *client) linger() {
	if !c.of.hasOthers() {
		c.of.releaseHandles(c.servers())
	}
	var all sync.WaitGroup
	for _, s := range c.servers() {
		all.Go(func() {
			s.linger()
			s.close()
		})
	}
	all.Wait()
}

// linger waits for the end of the first start of a server, unless the start for another client that has left lingers.
func (s *served) linger() {
	g := s.c.g
	if !s.isUnknown() {
		return
	}
	if _, isOther := g.lingering.LoadOrStore(s.name, s); isOther {
		return
	}
	defer g.lingering.Delete(s.name)
	for _, other := range g.everybody() {
		if beside := other.server(s.name); beside != nil {
			go beside.startBeside()
		}
	}
	s.noteSilent(false)
	s.meet(s.fetching, waiting{most: startTimeout}) //nolint:errcheck // there are no lists then
}

// startBeside starts the server for a client that waits for its lists, if a start for a client that has left lingers: that one
// may hang. The session that opens first has the lists, and the other start ends.
func (s *served) startBeside() {
	other, lingers := s.c.g.lingering.Load(s.name)
	if !lingers || s.c.ctx.Err() != nil || !s.isUnknown() {
		return
	}
	if _, err := s.c.g.do.Do(s.fetching, &messages.Open{Header: s.header(24 * time.Hour)}); err == nil {
		other.(*served).stopFetching()
	}
}

// isUnknown reports whether nothing is known of the server so far.
func (s *served) isUnknown() bool {
	l := s.lists["tools/list"]
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.busy && l.known == nil && l.err == nil
}

// close closes the session of a client that has left.
func (s *served) close() {
	s.stopFetching()
	if s.isShared() || s.c.of.hasOthers() {
		return
	}
	s.c.g.closeSession(s.key())
}

// closeSession closes a session. Its calls are ended.
func (g *Gateway) closeSession(key messages.Key) {
	ctx, cancel := context.WithTimeout(g.life, 2*closePatience) // Stop need not wait for it
	defer cancel()
	g.do.Do(ctx, &messages.CloseSession{Key: key, Now: true}) //nolint:errcheck // the end of the scope, or of the gateway, closes it
}
