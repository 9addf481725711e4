package gateway

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/mcpserver"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

// served is one server as one client sees it.
type served struct {
	c     *client
	name  string
	tools toolset.Server // the filters
	lists map[string]*list

	leveling sync.Mutex // while the log level is set

	mu         sync.Mutex
	open       bool   // the session of the client is open
	down       bool   // the server is known to be down, since a list was waited for in vain
	level      string // of its log messages, or "" if none was set
	generation uint64 // of the last result that the client has
}

func newServed(c *client, tools toolset.Server) *served {
	s := &served{c: c, name: tools.Name, tools: tools, lists: map[string]*list{}}
	for method, kind := range kinds {
		s.lists[method] = &list{of: s, method: method, kind: kind, ended: make(chan struct{}), again: make(chan struct{}, 1)}
	}
	return s
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
	h := messages.Header{Key: s.key(), ID: s.c.operationID(), Verbatim: true, Owner: s.c.owner, WaitUntil: time.Now().Add(patience)}
	if !s.isShared() {
		h.Handler = s.c.owner
	}
	return h
}

// onEvent notes what the lists, the settings and the subscriptions of the client depend on, and passes on what the server says.
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
		if own {
			s.setOpen(true)
		}
		for _, l := range s.lists {
			l.review()
		}
	case *messages.SessionClosed:
		if own {
			s.setOpen(false)
		}
	case *messages.ResourceUpdated:
		if s.c.watches(e.URI, s) {
			var params any = e.Verbatim
			if e.Verbatim == nil { // the session is a new one
				params = &mcp.ResourceUpdatedNotificationParams{URI: e.URI}
			}
			s.c.Notify("notifications/resources/updated", params, nil)
		}
	case *messages.ServerLog:
		params := mcpserver.ObjectOf(e.Verbatim)
		if s.c.g.cfg.Prefixed {
			if logger, err := mcpserver.Encode(s.name + "/" + e.Logger); err == nil {
				params["logger"] = logger
			}
		}
		s.c.Notify("notifications/message", params, s.c.requestOf(e.Operation.ID))
	case *messages.ElicitationCompleted:
		s.c.Notify("notifications/elicitation/complete", e.Verbatim, nil)
	case *messages.CustomNotification:
		s.c.Notify(e.Method, e.Params, nil)
	}
}

func (s *served) setOpen(open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open = open; !open {
		s.level = ""
	}
}

func (s *served) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *served) isDown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down
}

func (s *served) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// isGone reports whether a result comes from a newer session than the last one, so that the state of the server is gone.
func (s *served) isGone(generation uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.generation
	s.generation = max(before, generation)
	return before != 0 && before < generation
}

// introduce asks for what the server says about itself, for a moment.
func (s *served) introduce(ctx context.Context) {
	s.lists["tools/list"].get(ctx, listPatience) //nolint:errcheck // the client asks for the list itself
}

// introduced returns what the server has said about itself, or nil.
func (s *served) introduced() *mcp.InitializeResult {
	for _, l := range s.lists {
		l.mu.Lock()
		known := l.known
		l.mu.Unlock()
		if known != nil && known.server != nil {
			return known.server
		}
	}
	return nil
}

// away says why a list has not come in time.
func (s *served) away() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	reply, err := s.c.g.do.Do(ctx, &messages.Check{Key: s.key()})
	if status, ok := reply.(*messages.Status); err == nil && ok && status.Cause != "" {
		s.setDown(true)
		return errors.New(status.Cause)
	}
	return errors.New("the server has not answered yet")
}
