package closer

import (
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// selection is what a close command is about.
type selection struct {
	match   func(messages.Key) bool                    // its keys
	scope   string                                     // of all of them, or "" if they may have any
	found   func(t *table.Table) []*table.Registration // returns their sessions, if they have one scope
	servers func(server string) bool                   // whose sessions are searched for them otherwise
	now     bool
}

// selectionOf returns what a close command is about. The caller may change the command afterwards.
func selectionOf(cmd messages.Command) selection {
	switch cmd := cmd.(type) {
	case *messages.CloseSession:
		key := cmd.Key.Normal()
		return selection{match: func(k messages.Key) bool { return k == key }, scope: key.Scope, found: func(t *table.Table) []*table.Registration { return t.OfKey(key) }, now: cmd.Now}
	case *messages.CloseScope:
		scope := (messages.Key{Scope: cmd.Scope}).Normal().Scope
		return selection{match: func(k messages.Key) bool { return k.Scope == scope }, scope: scope, found: func(t *table.Table) []*table.Registration { return t.OfScope(scope) }, now: cmd.Now}
	case *messages.CloseMatching:
		of := *cmd
		return selection{match: of.Matches, servers: func(server string) bool { return of.Server == "" || of.Server == server }, now: of.Now}
	case *messages.CloseServer:
		server := cmd.Server
		return selection{match: func(k messages.Key) bool { return k.Server == server }, servers: func(name string) bool { return name == server }, now: cmd.Now}
	}
	return selection{match: anyKey, servers: anyServer, now: cmd.(*messages.CloseAll).Now}
}

// anyKey matches all keys.
func anyKey(messages.Key) bool { return true }

// anyServer matches all servers.
func anyServer(string) bool { return true }
