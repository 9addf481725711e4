package catalogue

import (
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// audience is who sees the same of a server.
type audience struct{ server, class string }

// Opened notes that a session has a connection. What it has announced meanwhile is not known: it lists again. class
// is that of the session, or "" if it is not known.
func (c *Catalogue) Opened(s *Session, key messages.Key, class string, now time.Time) {
	c.Lost(s, now)
	s.opened++
	s.key, s.open = key, true
	for _, h := range s.lists {
		h.list = nil
	}
	if class != "" && class != mcpbridge.OwnListClass(key.Scope) {
		c.join(s, audience{key.Server, class})
	}
}

// join notes that an open session may list for an audience.
func (c *Catalogue) join(s *Session, of audience) {
	if s.node.In != nil && s.of == of {
		return
	}
	c.leave(s)
	s.of = of
	c.open.Push(of, &s.node, s)
}

// leave takes an open session out of its audience.
func (c *Catalogue) leave(s *Session) { c.open.Remove(s.of, &s.node) }

// Separate notes that a scope has set what servers may list by. What its sessions have listed is of the time before:
// they list again, and for no other scope until they are of its class again. A fetch of the scope that is under way
// may be of the time before or after: nobody gets its list.
func (c *Catalogue) Separate(now time.Time, scope string, sessions ...*Session) {
	for _, s := range sessions {
		c.leave(s)
		for _, h := range s.lists {
			h.leave()
			h.classList.review(now)
		}
		s.lists = nil
	}
	for _, l := range c.running[scope] {
		l.separated = true
	}
}

// Lost notes that a session has no connection. Its scope keeps its list.
func (c *Catalogue) Lost(s *Session, now time.Time) {
	c.leave(s)
	s.lost(now)
}

// Closed notes that a session has ended.
func (c *Catalogue) Closed(s *Session, now time.Time) {
	c.Lost(s, now)
	s.lists = nil
}

// first begins a fetch for a key without a session: on an open and idle session of its audience, or else on the session
// that is opened for it.
func (c *Catalogue) first(cl *classList, q Question) Answer {
	if by := c.idle(cl, q); by != nil {
		if h := by.heldOf(cl.method, cl); h != nil && h.fetch != nil {
			return Answer{Wait: h.fetch}
		}
		return c.run(cl, by.key, by)
	}
	a := c.run(cl, q.Key, q.Of)
	a.Run.Remember = a.Run.Remember && !q.Fresh
	return a
}

// idle returns an open session that may list for the key of a question, or nil. It looks at the first few.
func (c *Catalogue) idle(cl *classList, q Question) *Session {
	if q.Idle == nil {
		return nil
	}
	tried := 0
	for by := range c.open.Of(cl.audience).All() {
		if tried++; tried > maxTried {
			break
		}
		if q.Idle(by.key) {
			return by
		}
	}
	return nil
}
