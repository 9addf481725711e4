package gateway

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

// served is one server as one client sees it.
type served struct {
	c        *client
	name     string
	tools    toolset.Filter // the filters
	endpoint *endpoint
	lists    map[string]*list

	fetching     context.Context // of lists: ends when the client has left
	stopFetching context.CancelFunc

	mu     sync.Mutex
	last   <-chan struct{} // closed when the last request is sent
	level  string          // the level of its log messages, or "" if none was set
	silent bool            // the client has waited for it in vain
}

// newServed returns a server for a client. The error says that it is not configured, or not prepared.
func newServed(c *client, tools toolset.Filter) (*served, error) {
	srv, err := preparedServer(c.g.backend, tools.Name)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	s := &served{c: c, name: tools.Name, tools: tools, lists: map[string]*list{}}
	if isSame := srv.ListClass != nil; isSame || s.isShared() {
		s.endpoint = c.g.endpoint(srv)
	} else {
		s.endpoint = newEndpoint(nil, &mcpbridge.Server{Name: s.name}) // the store is of no use: no other client has this scope
	}
	s.fetching, s.stopFetching = context.WithCancel(c.g.life)
	first := make(chan struct{})
	close(first)
	s.last = first
	for method, kind := range kinds {
		s.lists[method] = &list{of: s, method: method, kind: kind, ended: make(chan struct{}), again: make(chan struct{}, 1)}
	}
	return s, nil
}

// server returns the server with a name, or nil.
func (c *client) server(name string) *served {
	for _, s := range c.servers {
		if s.name == name {
			return s
		}
	}
	return nil
}

// isShared reports whether clients share a session of the server.
func (s *served) isShared() bool { return s.tools.Scope != "" }

// key returns the key of the client's session.
func (s *served) key() messages.Key {
	return messages.Key{Server: s.name, Scope: cmp.Or(s.tools.Scope, s.c.scope)}
}

// header returns the header of an operation for the client.
func (s *served) header(patience time.Duration) messages.Header {
	h := messages.Header{Key: s.key(), ID: s.c.operationID(), Owner: s.c.of.owner, WaitUntil: time.Now().Add(patience)}
	h.Verbatim = true
	if !s.isShared() {
		h.Handler = s.c.of.owner
	}
	return h
}

// onEvent handles an event on which lists or settings of the client depend, and passes on what the server says.
func (s *served) onEvent(e messages.Event) {
	own := e.GetStamp().Key == s.key()
	switch e := e.(type) {
	case *messages.CatalogueChanged:
		s.lists[e.Method].review()
	case *messages.ToolsChanged:
		s.lists["tools/list"].review()
	case *messages.PromptsChanged:
		s.lists["prompts/list"].review()
	case *messages.ResourcesChanged:
		s.lists["resources/list"].review()
		s.lists["resources/templates/list"].review()
	case *messages.SessionOpened, *messages.SessionRestarted:
		for _, l := range s.lists {
			l.review()
		}
	case *messages.SessionClosed:
		if own {
			s.mu.Lock()
			s.level = ""
			s.mu.Unlock()
		}
	case *messages.ResourceUpdated:
		if s.c.watches(e.URI, s.name) {
			var params any = e.Verbatim
			if e.Verbatim == nil { // the session is a new one
				params = &mcp.ResourceUpdatedNotificationParams{URI: e.URI}
			}
			s.c.Notify("notifications/resources/updated", params, nil)
		}
	case *messages.ServerLog:
		if s.c.isOfAnother(e.Operation.ID) {
			return
		}
		params := mcpserver.ObjectOf(e.Verbatim)
		if s.c.offer.prefixed {
			params.With("logger", strings.TrimSuffix(s.name+"/"+e.Logger, "/"))
		}
		s.c.Notify("notifications/message", params, s.c.requestOf(e.Operation.ID))
	case *messages.ElicitationCompleted:
		s.c.Notify("notifications/elicitation/complete", e.Verbatim, nil)
	case *messages.CustomNotification:
		s.c.Notify(e.Method, e.Params, nil)
	}
}

// isOpen reports whether the client has a session with the server, or will have one.
func (s *served) isOpen(ctx context.Context) bool {
	status := s.check(ctx)
	return status != nil && status.State != "" && status.State != messages.StateDraining
}

// check returns what is known of the session of the client, or nil.
func (s *served) check(ctx context.Context) *messages.Status {
	reply, err := s.c.g.do.Do(ctx, &messages.Check{Key: s.key()})
	if err != nil {
		return nil
	}
	return reply.(*messages.Status)
}

// introduced returns what the server has said about itself, or an empty object if that is not known.
func (s *served) introduced() mcpserver.Object {
	for _, l := range s.lists {
		l.mu.Lock()
		known := l.known
		l.mu.Unlock()
		if known != nil && known.server != nil {
			return mcpserver.ObjectOf(known.server)
		}
	}
	return mcpserver.Object{}
}

// capabilitiesIn returns the capabilities in what a server has said about itself, or everything if they are not known.
func capabilitiesIn(said mcpserver.Object) mcpserver.Object {
	if its := said["capabilities"]; its != nil {
		return mcpserver.ObjectOf(its)
	}
	return mcpserver.ObjectOf(everything)
}
