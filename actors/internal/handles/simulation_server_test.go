package handles

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/schedule"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// traits are what a server is like.
type traits struct {
	unique, reuses, own, bound, lists, dead bool
	room, most                              int // that it has, and that is declared
	idle                                    time.Duration
}

// fakeServer is a server that mints handles.
type fakeServer struct {
	traits
	all         []*instance
	incarnation int
	counter     int
}

// instance is a handle of a server.
type instance struct {
	id        string
	by        *mint // nil: another client has minted it
	life      int   // of us, when it was minted
	isOpen    bool
	isLearned bool // the answer of its mint has come
	known     bool // it has come to the caller
	isWeak    bool // if its id is not unique, it may be another one's by now
	isTaken   bool // its mint was lost, and when its answer came, the id was that of a handle that is not known to be gone
	isOrphan  bool // its scope has not come back since we have forgotten who holds it
	isClosed  bool // by an agent: perhaps before a release of ours arrives that was sent before
	released  int  // in which life of ours, with an answer
	session   uint64
	users     map[*agent]bool
	former    map[*agent]bool // who have used it before it was idle
}

func (i *instance) String() string { return i.id }

func aServer(r *schedule.Run) fakeServer {
	t := traits{unique: r.N(2) == 1, reuses: r.N(2) == 1, own: r.N(2) == 1, bound: r.N(4) == 1, lists: r.N(3) > 0, dead: r.N(4) == 1, room: []int{0, 2, 4}[r.N(3)]}
	t.most = []int{0, 1, 3}[r.N(3)]
	t.idle = []time.Duration{0, 0, 0, 30 * time.Second}[r.N(4)]
	t.lists = t.lists || t.own
	t.dead = t.dead && !t.own
	t.reuses = t.reuses && !t.bound // an id that ends with its session may come again before anybody knows
	return fakeServer{traits: t}
}

func (t traits) declared() Kinds {
	h := mcpbridge.Handle{
		Mint: "open", Path: "id", Release: "close", Gone: "no such", Full: "too many", Max: t.most, Idle: t.idle, Own: t.own, Unique: t.unique, Bound: t.bound,
	}
	if t.lists {
		h.List, h.Listed = "list", `(?m)^(\S+)$`
	}
	return KindsOf(&mcpbridge.Server{Name: "server", Handles: []mcpbridge.Handle{h}})
}

func said(isError bool, text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: isError, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// find returns the handle with an id, or nil.
func (srv *fakeServer) find(id string) *instance {
	if n := slices.IndexFunc(srv.all, func(i *instance) bool { return i.isOpen && i.id == id }); n >= 0 {
		return srv.all[n]
	}
	return nil
}

// open mints a handle.
func (s *simulation) open(m *mint) (*mcp.CallToolResult, *instance) {
	count := 0
	for _, i := range s.all {
		if i.isOpen {
			count++
		}
	}
	if s.room > 0 && count >= s.room {
		return said(true, "too many"), nil
	}
	s.counter++
	if s.reuses && !s.unique {
		for s.counter = 1; s.find(fmt.Sprint(s.counter)) != nil; s.counter++ {
		}
	}
	i := &instance{id: fmt.Sprint(s.counter), by: m, life: s.life, isOpen: true, users: map[*agent]bool{}, former: map[*agent]bool{}}
	if m != nil {
		i.session = s.conns[m.a.Scope].generation
		i.life, i.isWeak = m.life, m.suspect
	}
	if s.unique {
		i.id = fmt.Sprintf("unique-%d", len(s.all))
	}
	s.Logf("the server mints %s", i)
	s.all = append(s.all, i)
	return said(false, fmt.Sprintf(`{"id": %q}`, i.id)), i
}

// called calls a tool with a handle.
func (s *simulation) called(tool, id string, ours bool) *mcp.CallToolResult {
	i := s.find(id)
	switch {
	case i == nil:
		return said(true, "no such handle")
	case tool == "close":
		s.Logf("the server releases %s", i)
		i.isOpen, i.isClosed = false, i.isClosed || !ours
	}
	return said(false, "done")
}

// list lists the handles that there are now, and on some servers some that were.
func (s *simulation) list() *mcp.CallToolResult {
	var ids []string
	for _, i := range s.all {
		if (i.isOpen || s.dead) && !slices.Contains(ids, i.id) {
			ids = append(ids, i.id)
		}
	}
	s.Logf("the server lists %v", ids)
	return said(false, strings.Join(ids, "\n"))
}

// call is a call over the connection of a scope.
type call struct {
	scope, what string
	until       time.Time
	guard       func() error // just before it is sent, if it is not nil
	run         func() *mcp.CallToolResult
	got         func(*mcp.CallToolResult, *messages.Failure)
	late        func(*mcp.CallToolResult) // an answer after the failure, if it is not nil
}

// What may become of a call.
const (
	isAnswered = iota
	isNotSent
	isRequestLost
	isAnswerLost
	isLate  // it runs after it was given up
	crosses // its answer comes as it is given up
)

// call sends a call.
func (s *simulation) call(c *call) {
	failed := func(code messages.Code, mayHaveRun bool) func() {
		return func() {
			s.Logf("%s of %s fails: %s, may have run: %v", c.what, c.scope, code, mayHaveRun)
			c.got(nil, &messages.Failure{Code: code, MayHaveRun: mayHaveRun})
		}
	}
	fate := s.Weighted([]int{12, 1, 1, 1, 1, 1})
	if s.healed {
		fate = isAnswered
	}
	if !c.until.IsZero() && !s.now.Before(c.until) {
		s.later("a call is too late", failed(messages.CodeDeadline, false))
		return
	}
	if fate == isNotSent {
		s.later("a call is not sent", failed(messages.CodeUnavailable, false))
		return
	}
	s.connect(c.scope)
	if c.guard != nil && c.guard() != nil {
		s.Crossed("a release is not sent any more")
		s.later("a release is not sent any more", failed(messages.CodeUnavailable, false))
		return
	}
	incarnation, life, generation := s.incarnation, s.life, s.conns[c.scope].generation
	lost := failed([]messages.Code{messages.CodeLost, messages.CodeDeadline}[s.N(2)], true)
	if fate == isRequestLost || fate == isLate {
		s.later("a call is given up", lost)
	}
	if fate == isRequestLost {
		return
	}
	s.messages = append(s.messages, &message{"a request arrives: " + c.what + " of " + c.scope, 0, s.arrival(), nil, func() {
		at := s.conns[c.scope]
		gone := incarnation != s.incarnation || s.bound && (generation != at.generation || !at.isOpen)
		var r *mcp.CallToolResult
		if !gone {
			r = c.run()
		}
		answers := func(what string, do func()) {
			if life == s.life {
				s.later(what, do)
			}
		}
		late := func() {
			if c.late != nil && !gone && incarnation == s.incarnation {
				c.late(r)
			}
		}
		switch fate {
		case isLate:
			answers("a late answer to "+c.what, late)
		case crosses:
			answers("an answer that crosses: "+c.what, late)
			answers("a call is given up", lost)
		case isAnswerLost:
			answers("an answer is lost", lost)
		default:
			answers("an answer to "+c.what, func() {
				if gone || incarnation != s.incarnation {
					lost()
					return
				}
				c.got(r, nil)
			})
		}
	}})
}

// connect opens the connection of a scope, with a new session.
func (s *simulation) connect(scope string) {
	if c := s.conns[scope]; !c.isOpen {
		c.isOpen = true
		c.generation++
		s.Logf("%s has session %d", scope, c.generation)
		s.fact(func() { s.book.Opened(messages.Key{Server: "server", Scope: scope}, c.generation, s.now) })
	}
}

// closeConn ends the session of a scope, and with it what is bound to it.
func (s *simulation) closeConn(scope string) {
	s.conns[scope].isOpen = false
	for _, i := range s.all {
		if s.bound && i.by != nil && i.by.a.Scope == scope && i.session <= s.conns[scope].generation {
			i.isOpen = false
			clear(i.users)
		}
	}
}

// lose loses the session of a scope.
func (s *simulation) lose(scope string) {
	if !s.conns[scope].isOpen {
		return
	}
	s.Logf("%s loses its session", scope)
	s.Crossed("a session is lost")
	s.closeConn(scope)
	s.broke(scope, false)
	s.connect(scope)
}

// broke notes that the connection of a scope was lost, or all connections.
func (s *simulation) broke(scope string, all bool) {
	isKnown := map[*instance]bool{}
	for _, h := range s.k.all {
		if i := s.meant[h]; i != nil {
			isKnown[i] = true
			i.isWeak = i.isWeak || all || h.By.Scope == scope
		}
	}
	for _, i := range s.all {
		i.isWeak = i.isWeak || !isKnown[i] && !i.isLearned && i.by != nil && (all || i.by.a.Scope == scope)
	}
	s.fact(func() { s.book.Broke(messages.Key{Server: "server", Scope: scope}, all) })
}

// evict closes the session of a scope that nothing is bound to.
func (s *simulation) evict(scope string) {
	if s.conns[scope].isOpen && !s.book.IsBound(messages.Key{Server: "server", Scope: scope}) {
		s.Logf("the session of %s is evicted", scope)
		s.Crossed("a session is evicted")
		s.closeConn(scope)
	}
}

// restartServer has the server forget all, and count anew.
func (s *simulation) restartServer() {
	s.Logf("the server restarts")
	s.Crossed("the server restarts")
	s.incarnation++
	s.counter = 0
	for _, i := range s.all {
		i.isOpen = false
	}
	for _, scope := range s.scopes() {
		s.conns[scope].isOpen = false
	}
	s.broke("a", true)
}

// dies ends a handle.
func (s *simulation) dies() {
	if n := len(s.all); n > 0 {
		i := s.all[s.N(n)]
		s.Logf("%s dies", i)
		i.isOpen = false
	}
}

// others has another client mint a handle, or release one of its own.
func (s *simulation) others() {
	own := slices.DeleteFunc(slices.Clone(s.all), func(i *instance) bool { return i.by != nil || !i.isOpen })
	if len(own) == 0 || s.N(2) == 1 {
		s.open(nil)
		return
	}
	s.Logf("another client releases %s", own[0])
	own[0].isOpen = false
}
