package closer

import (
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// Selection is what a close command is about.
type Selection struct {
	Match   func(messages.Key) bool                    // its keys; may be called from any goroutine
	scope   string                                     // of all of them, or "" if they may have any
	found   func(t *table.Table) []*table.Registration // returns their sessions, if they have one scope
	Servers func(server string) bool                   // whose sessions are searched for them; none if they are found otherwise
	now     bool
}

// selectionOf returns what a close command is about. The caller may change the command afterwards.
func selectionOf(cmd messages.Command) Selection {
	switch cmd := cmd.(type) {
	case *messages.CloseSession:
		key := cmd.Key.Normal()
		return Selection{Match: func(k messages.Key) bool { return k == key }, scope: key.Scope, found: func(t *table.Table) []*table.Registration { return t.OfKey(key) }, Servers: NoServer, now: cmd.Now}
	case *messages.CloseScope:
		scope := (messages.Key{Scope: cmd.Scope}).Normal().Scope
		return Selection{Match: func(k messages.Key) bool { return k.Scope == scope }, scope: scope, found: func(t *table.Table) []*table.Registration { return t.OfScope(scope) }, Servers: NoServer, now: cmd.Now}
	case *messages.CloseMatching:
		of := *cmd
		return Selection{Match: of.Matches, Servers: func(server string) bool { return of.Server == "" || of.Server == server }, now: of.Now}
	case *messages.CloseServer:
		server := cmd.Server
		return Selection{Match: func(k messages.Key) bool { return k.Server == server }, Servers: func(name string) bool { return name == server }, now: cmd.Now}
	}
	return Selection{Match: anyKey, Servers: anyServer, now: cmd.(*messages.CloseAll).Now}
}

// anyKey matches all keys.
func anyKey(messages.Key) bool { return true }

// anyServer matches all servers.
func anyServer(string) bool { return true }

// NoServer matches none.
func NoServer(string) bool { return false }
