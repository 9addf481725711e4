package serve

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// noMethod returns the error for a method that is not known.
func noMethod(method string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method %q is not known", method)}
}

// What a client sets is set on the sessions that are open, and on others when they open: a setting starts no process.

// setLevel sets the level of log messages.
func (c *client) setLevel(params object) (any, error) {
	level := params.text("level")
	if level == "" {
		return nil, invalid("level: is missing")
	}
	c.mu.Lock()
	c.logLevel = level
	c.mu.Unlock()
	for _, s := range c.servers {
		if s.isOpen() {
			s.applyLevel(c.ctx, level)
		}
	}
	return struct{}{}, nil
}

// applySettings sets the log level on a session that has opened. The roots are asked for.
func (s *served) applySettings() {
	s.c.mu.Lock()
	level := s.c.logLevel
	s.c.mu.Unlock()
	if level != "" {
		go s.applyLevel(s.c.ctx, level)
	}
}

func (s *served) applyLevel(ctx context.Context, level string) {
	if said := s.introduced(); said != nil && said.Capabilities != nil && said.Capabilities.Logging == nil {
		return
	}
	if _, err := s.c.g.do.Do(ctx, &messages.SetLogLevel{Header: s.header(patience), Level: level}); err != nil {
		s.c.g.log.Debug().Str("scope", s.c.scope).Str("server", s.name).Err(err).Msg("log level was not set")
	}
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
	for _, s := range c.servers {
		if s.isOpen() && !s.isShared() {
			if _, err := c.g.do.Do(c.ctx, &messages.SetRoots{Header: s.header(patience), Roots: result.Roots}); err != nil {
				c.g.log.Debug().Str("scope", c.scope).Str("server", s.name).Err(err).Msg("roots were not set")
			}
		}
	}
}
