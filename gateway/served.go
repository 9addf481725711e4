package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/gateway/internal/publicid"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

// served is one server as one client sees it.
type served struct {
	c        *client
	name     string
	of       *mcpbridge.Server
	tools    toolset.Filter   // its entry in the offer
	filters  []toolset.Filter // of its tools, which pass all of them: tools, and those for the client
	endpoint *endpoint
	lists    map[string]*list

	holder messages.Attributes // see holderOf; none unless clients share the session and the server mints handles

	fetching     context.Context // of lists: ends when the client has left
	stopFetching context.CancelFunc

	mu     sync.Mutex
	last   <-chan struct{} // closed when the last request is sent
	level  string          // the level of its log messages, or "" if none was set
	silent bool            // the client has waited for it in vain
}

// newServed returns a server for a client, with the filters of [client.filters]. The error says that it is not configured, or not prepared.
func newServed(c *client, filters []toolset.Filter) (*served, error) {
	tools := filters[0]
	srv, err := preparedServer(c.g.backend, tools.Name)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	s := &served{c: c, name: tools.Name, of: srv, tools: tools, filters: filters, lists: map[string]*list{}}
	if isSame := srv.ListClass != nil; isSame || s.isShared() {
		s.endpoint = c.g.endpoint(srv)
	} else {
		s.endpoint = newEndpoint(nil, &mcpbridge.Server{Name: s.name}) // the store is of no use: no other client has this scope
	}
	if s.isShared() && len(srv.Handles) > 0 {
		s.holder = holderOf(c.scope)
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
func (c *client) server(name string) *served { return find(c.servers(), name) }

// find returns the server with a name, or nil.
func find(servers []*served, name string) *served {
	if i := slices.IndexFunc(servers, func(s *served) bool { return s.name == name }); i >= 0 {
		return servers[i]
	}
	return nil
}

// stopFetching ends all fetches of lists of servers.
func stopFetching(servers []*served) {
	for _, s := range servers {
		s.stopFetching()
	}
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
	h.Verbatim, h.Attributes = true, s.holder
	if !s.isShared() {
		h.Handler = s.c.of.owner
	}
	return h
}

// wants reports whether a tool passes all filters, see [toolset.Filter.Wants].
func (s *served) wants(tool string, readsOnly bool) bool {
	return !slices.ContainsFunc(s.filters, func(f toolset.Filter) bool { return !f.Wants(tool, readsOnly) })
}

// offers reports whether the client may call a tool: it need not be listed, unless only tools that read pass. Then a call waits for a list
// of the client's own session. Without it the tool is refused, and the error says why there is none.
func (s *served) offers(r *mcpserver.Request, tool string) (bool, error) {
	switch {
	case s.wants(tool, false):
		return true, nil
	case !s.wants(tool, true):
		return false, nil
	}
	if err := s.confirm(r, "tools/list"); err != nil {
		return false, err
	}
	return s.tool(tool).ID != "", nil
}

// unpinned returns why a tool or a prompt may not be used now, or nil, if there are [Config.Pins]. It waits until the session of the client has
// listed it.
func (s *served) unpinned(r *mcpserver.Request, method, name string) error {
	if err := s.confirm(r, method); err != nil {
		return fmt.Errorf("the definition of %.100q could not be compared with the one that was accepted: %w", name, err)
	}
	s.lists[method].settle(r)
	if known := s.lists[method].last(); known != nil {
		return known.pinned.Accepts(name)
	}
	return errGone
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
		params := mcpserver.ObjectOf(s.c.publicTasks(s, e.Verbatim))
		if s.c.offer.prefixed {
			params.With("logger", strings.TrimSuffix(s.name+"/"+e.Logger, "/"))
		}
		if s.c.isStateless {
			s.c.logLine(s, e, params)
			return
		}
		s.c.Notify("notifications/message", params, s.c.requestOf(e.Operation.ID))
	case *messages.ElicitationCompleted:
		s.c.Notify("notifications/elicitation/complete", s.c.publicTasks(s, e.Verbatim), nil)
	case *messages.CustomNotification:
		at := publicid.Call
		if strings.HasPrefix(e.Method, "notifications/tasks") {
			if s.isShared() { // nobody knows which client the task belongs to
				return
			}
			at = publicid.Task
		}
		s.c.Notify(e.Method, s.c.withPublicTasks(s, at, e.Params), nil)
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
		if known := l.last(); known != nil && known.server != nil {
			return mcpserver.ObjectOf(known.server)
		}
	}
	return mcpserver.Object{}
}

// introducedTasks is introduced for the capability for tasks: if clients share the session, none of them may list the tasks of others.
func (s *served) introducedTasks() mcpserver.Object {
	if s.isShared() {
		return withoutTaskList(s.introduced())
	}
	return s.introduced()
}

// capabilitiesIn returns the capabilities in what a server has said about itself, or everything if they are not known.
func capabilitiesIn(said mcpserver.Object) mcpserver.Object {
	if its := said["capabilities"]; its != nil {
		return mcpserver.ObjectOf(its)
	}
	return mcpserver.ObjectOf(everything)
}

// logLine passes a log message on to the request that it belongs to, if that wants its level. If the server does not say to which it
// belongs, it is the last one that calls the server and wants the level. Nobody else gets it.
func (c *client) logLine(s *served, e *messages.ServerLog, params mcpserver.Object) {
	c.mu.Lock()
	var found operation
	for id, one := range c.operations {
		now := one.r.Current()
		if now == nil {
			continue
		}
		isCandidate := id == e.Operation.ID || e.Operation.ID == "" && one.of == s
		wanted := slices.Index(levels, now.Meta().Text(mcp.MetaKeyLogLevel))
		if isCandidate && wanted >= 0 && wanted <= slices.Index(levels, e.Level) && (found.r == nil || one.serial > found.serial) {
			found = one
		}
	}
	c.mu.Unlock()
	if found.r != nil {
		c.Notify("notifications/message", params, found.r)
	}
}
