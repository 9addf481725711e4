package closer

import "github.com/mcpactor/mcpactor/messages"

// selection is what a close command is about.
type selection struct {
	match  func(messages.Key) bool // its keys
	scope  string                  // of all of them, or "" if they may have any
	server string                  // of all of them, or "" if they may have any
	now    bool
}

// selectionOf returns what a close command is about. The caller may change the command afterwards.
func selectionOf(cmd messages.Command) selection {
	switch cmd := cmd.(type) {
	case *messages.CloseSession:
		key := cmd.Key.Normal()
		return selection{func(k messages.Key) bool { return k == key }, key.Scope, key.Server, cmd.Now}
	case *messages.CloseScope:
		scope := (messages.Key{Scope: cmd.Scope}).Normal().Scope
		return selection{func(k messages.Key) bool { return k.Scope == scope }, scope, "", cmd.Now}
	case *messages.CloseMatching:
		of := *cmd
		return selection{of.Matches, "", of.Server, of.Now}
	case *messages.CloseServer:
		server := cmd.Server
		return selection{func(k messages.Key) bool { return k.Server == server }, "", server, cmd.Now}
	}
	return selection{match: anyKey, now: cmd.(*messages.CloseAll).Now}
}

// anyKey matches all keys.
func anyKey(messages.Key) bool { return true }

// anyServer matches all servers.
func anyServer(string) bool { return true }
