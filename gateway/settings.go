package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/messages"
)

// What a client sets is set on its open sessions, and on others when they open: a setting starts no process.

// levels are the levels of log messages.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// setLevel sets the level of log messages, for the requests that come after it.
func (c *client) setLevel(r *mcpserver.Request, params mcpserver.Object) (any, error) {
	level := params.Text("level")
	if !slices.Contains(levels, level) {
		return nil, mcpserver.Invalid("level: use one of " + strings.Join(levels, ", "))
	}
	c.note(func(k *record) bool {
		changed := k.LogLevel != level
		k.LogLevel = level
		return changed
	})
	var all sync.WaitGroup
	for _, s := range c.servers() {
		before, sent, level := s.turn()
		all.Go(func() {
			defer sent()
			select {
			case <-before:
			case <-r.Context.Done():
			}
			if s.isOpen(r.Context) {
				s.applyLevel(r.Context, s.header(patience), level)
			}
		})
	}
	r.Pass()
	c.keep()
	all.Wait()
	return struct{}{}, nil
}

// applyLevel sets the level of the client on its session, unless it is set already: the library sets it again when the session
// opens again. It is called in the turn of a request, so that the request may log.
func (s *served) applyLevel(ctx context.Context, h messages.Header, level string) {
	if level == "" {
		return
	}
	s.mu.Lock()
	set := s.level == level
	s.mu.Unlock()
	if set || capabilitiesIn(s.introduced())["logging"] == nil {
		return
	}
	h.ID = s.c.operationID()
	if _, err := s.c.g.do.Do(ctx, &messages.SetLogLevel{Header: h, Level: level}); err != nil {
		s.c.g.log.Debug().Str("scope", s.c.scope).Str("server", s.name).Err(err).Msg("log level was not set")
		return
	}
	s.mu.Lock()
	s.level = level
	s.mu.Unlock()
}

// replaceRoots asks the client for its roots, which have changed, and passes them on to its open sessions.
func (c *client) replaceRoots() {
	if !c.ready.Load() {
		return
	}
	answer, err := c.ask(c.ctx, "roots/list", nil, nil)
	if err != nil {
		return
	}
	var result mcp.ListRootsResult
	if json.Unmarshal(answer, &result) != nil {
		return
	}
	for _, s := range c.servers() {
		if !s.isShared() && s.isOpen(c.ctx) {
			if _, err := c.g.do.Do(c.ctx, &messages.SetRoots{Header: s.header(patience), Roots: result.Roots}); err != nil {
				c.g.log.Debug().Str("scope", c.scope).Str("server", s.name).Err(err).Msg("roots were not set")
			}
		}
	}
}

// lowerLevel returns the level of log messages to set on the session of the server for a request that wants a level, or "": the most
// verbose one that any request has wanted. What the client gets depends on each request, see [client.logLine].
func (s *served) lowerLevel(wanted string) string {
	if isStateless(s.introduced()) { // the request says it to the server
		return ""
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	before := s.c.record.LogLevel
	if at := slices.Index(levels, wanted); at >= 0 && (before == "" || at < slices.Index(levels, before)) {
		s.c.record.LogLevel = wanted
	}
	return s.c.record.LogLevel
}
