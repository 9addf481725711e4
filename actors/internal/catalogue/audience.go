package catalogue

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/ring"
	"github.com/mcpactor/mcpactor/internal/listclass"
	"github.com/mcpactor/mcpactor/messages"
)

// audience is who sees the same of a server.
type audience struct{ server, class string }

// Opened notes that a session has a connection. It lists again, because the server may have announced a change while
// there was none. class is that of the session, or "" if it is not known.
func (c *Catalogue) Opened(s *Session, key messages.Key, class string, now time.Time) {
	c.Lost(s, now)
	s.opened++
	s.key, s.open = key, true
	for _, h := range s.lists {
		h.list = nil
	}
	if class != "" && class != listclass.Own(key.Scope) {
		c.join(s, audience{key.Server, class})
	}
}

// join notes that an open session may list for an audience.
func (c *Catalogue) join(s *Session, of audience) {
	if s.node.In != nil && s.of == of {
		return
	}
	c.leave(s)
	if c.open[of] == nil {
		c.open[of] = &ring.Ring[*Session]{}
	}
	s.of = of
	c.open[of].Push(&s.node, s)
}

// leave takes an open session out of its audience.
func (c *Catalogue) leave(s *Session) {
	if s.node.In == nil {
		return
	}
	if s.node.In.Remove(&s.node); c.open[s.of].Count == 0 {
		delete(c.open, s.of)
	}
}

// Separate notes that a scope has set something by which servers may list. Its sessions list again, and for no other
// scope until they belong to a class again. Nobody gets the result of a fetch that is under way for the scope: it may
// be of the time before.
func (c *Catalogue) Separate(now time.Time, scope string, sessions ...*Session) {
	for _, s := range sessions {
		c.leave(s)
		s.leave(now)
		s.lists = nil
	}
	for _, l := range c.running[scope] {
		l.separated = true
	}
}

// Lost notes that a session has no connection. Its scope keeps its list.
func (c *Catalogue) Lost(s *Session, now time.Time) {
	c.leave(s)
	s.open = false
	s.leave(now)
}

// Closed notes that a session has ended.
func (c *Catalogue) Closed(s *Session, now time.Time) {
	c.Lost(s, now)
	s.lists = nil
}

// first begins a fetch for a key without a session: on an open, idle session of its audience, or else on a session that is
// opened for it.
func (c *Catalogue) first(e *entry, q Question) Answer {
	if by := c.idle(e, q); by != nil {
		if h := by.heldOf(e.method, e); h != nil && h.fetch != nil {
			return Answer{Wait: h.fetch}
		}
		return c.run(e, by.key, by)
	}
	a := c.run(e, q.Key, q.Of)
	a.Run.Remember = a.Run.Remember && !q.Fresh
	return a
}

// idle returns an open session that may list for the key of a question, or nil. It tries the first few.
func (c *Catalogue) idle(e *entry, q Question) *Session {
	of := c.open[e.audience]
	if of == nil || q.Idle == nil {
		return nil
	}
	tried := 0
	for by := range of.All() {
		if tried++; tried > maxTried {
			break
		}
		if q.Idle(by.key) {
			return by
		}
	}
	return nil
}
