package catalogue

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/ring"
	"github.com/mcpactor/mcpactor/internal/listclass"
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

// Separate notes that a scope has set what servers may list by. What its sessions have listed is of the time before:
// they list again, and for no other scope until they are of its class again. A listing of the scope that is under way
// may be of the time before or after: nobody gets it.
func (c *Catalogue) Separate(now time.Time, scope string, sessions ...*Session) {
	for _, s := range sessions {
		c.leave(s)
		for _, h := range s.lists {
			h.leave()
			h.shelf.review(now)
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

// first begins a listing for a key without a session: on one of its audience that is open and idle, or else on the one
// that the listing opens.
func (c *Catalogue) first(sh *shelf, q Question) Answer {
	if by := c.idle(sh, q); by != nil {
		if h := by.heldOf(sh.method, sh); h != nil && h.listing != nil {
			return Answer{Wait: h.listing}
		}
		return c.run(sh, by.key, by)
	}
	a := c.run(sh, q.Key, q.Of)
	a.Run.Remember = a.Run.Remember && !q.Fresh
	return a
}

// idle returns an open session that may list for the key of a question, or nil. It looks at the first few.
func (c *Catalogue) idle(sh *shelf, q Question) *Session {
	of := c.open[sh.audience]
	if of == nil || q.Idle == nil {
		return nil
	}
	looks := 0
	for by := range of.All() {
		if looks++; looks > maxLooks {
			break
		}
		if q.Idle(by.key) {
			return by
		}
	}
	return nil
}
