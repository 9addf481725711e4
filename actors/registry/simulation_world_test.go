package registry

import (
	"fmt"
	"slices"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// world is what is outside of the supervisors: the servers, and the store. It is used by whoever has the turn.
type world struct {
	s         *simulation
	servers   map[string]mcpbridge.Server // as they are configured
	addresses map[string]*address
	sessions  []*served
	conns     []*simConn
	ranOn     map[string]*served   // the session that has run an operation last
	executed  map[string]int       // how often the server has run an operation
	mayRun    map[string]int       // how often it may have run, for all that the bridge knows
	sent      map[string]int       // how often the bridge was asked to
	causes    map[messages.Key]int // of faults that no event has reported
	listings  map[messages.Key]int // of the catalogue that have begun on its session
	changed   map[string]bool      // servers that a reload has changed or removed
	healed    bool                 // there are no faults any more
	rate      int                  // one request in so many has a fault
	dialRate  int                  // one dial in so many has
	slowStore bool
	stored    map[messages.Key]*mcpbridge.Record
	failed    map[messages.Key]bool // the store has failed a request about it
}

// newWorld returns a world without servers.
func newWorld(s *simulation) world {
	return world{
		s: s, servers: map[string]mcpbridge.Server{}, addresses: map[string]*address{}, ranOn: map[string]*served{}, executed: map[string]int{},
		mayRun: map[string]int{}, sent: map[string]int{}, causes: map[messages.Key]int{}, listings: map[messages.Key]int{}, changed: map[string]bool{},
		stored: map[messages.Key]*mcpbridge.Record{}, failed: map[messages.Key]bool{},
	}
}

// address is where servers are reached.
type address struct {
	name  string
	down  bool // nothing answers
	front bool // something else answers
	lists int  // how often what it lists has changed
}

// thing returns the name of what it lists now.
func (at *address) thing() string { return fmt.Sprint(at.name, " ", at.lists) }

// served is an MCP session as its server knows it.
type served struct {
	id     string
	key    messages.Key
	at     *address
	by     *supervisor // the last one that has opened or resumed it; nil if it is from before the simulation
	known  bool        // the server knows it
	told   bool        // a caller was told that it does not
	used   bool        // an operation has reached it
	excuse string      // why it may be left at the end, or ""
}

// isStored reports whether the store has the session.
func (w *world) isStored(of *served) bool {
	return w.stored[of.key] != nil && w.stored[of.key].SessionID == of.id
}

// newSession returns a session that its server has opened.
func (w *world) newSession(p *supervisor, key messages.Key, at *address) *served {
	of := &served{id: fmt.Sprint("session-", len(w.sessions)), key: key, at: at, by: p, known: true}
	w.sessions = append(w.sessions, of)
	if srv, there := w.servers[key.Server]; w.s.isLeaving(of) && (!there || w.addressOf(srv, key) != at) {
		of.excuse = "it is opened before its process knows that its server was changed, and then left"
	}
	return of
}

// control is a second session that was opened to settle a doubt.
type control struct {
	of    *served
	ended func()
}

// addressOf returns where the server of a key is reached.
func (w *world) addressOf(srv mcpbridge.Server, key messages.Key) *address {
	name := srv.Command + srv.URL
	if srv.PerKey != nil {
		name = addressOf(srv.URL, key)
	}
	if w.addresses[name] == nil {
		w.addresses[name] = &address{name: name}
	}
	return w.addresses[name]
}

// addressOf returns the URL of a key of a server with PerKey.
func addressOf(url string, key messages.Key) string { return fmt.Sprint(url, "/", len(key.Scope)%2) }

// fault chooses one of n outcomes of what the world does. 0 is none.
func (w *world) fault(n, rate int) int {
	if w.healed || rate == 0 {
		return 0
	}
	return w.s.Rarely(n, rate)
}

// isKept reports whether only the store has a session, for all that is known.
func (w *world) isKept(of *served) bool {
	return w.isStored(of) && !slices.ContainsFunc(w.conns, func(c *simConn) bool { return c.of == of && !c.gone() })
}

// excuse excuses sessions: nobody may know them any more.
func (w *world) excuse(why string, is func(*served) bool) {
	for _, of := range w.sessions {
		if is(of) {
			of.excuse = why
		}
	}
}
