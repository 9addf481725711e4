package closer

import "github.com/mcpactor/mcpactor/messages"

// selection is what a close command is about.
type selection struct {
	match  func(messages.Key) bool // its keys
	scope  string                  // of all of them, or "" if they may have any
	server string                  // of all of them, or "" if they may have any
	now    bool
	keeps  bool // the handles of the scope
}

// selectionOf returns what a close command is about. The caller may change the command afterwards.
func selectionOf(cmd messages.Command) selection {
	switch cmd := cmd.(type) {
	case *messages.CloseSession:
		key := cmd.Key.Normal()
		return selection{match: func(k messages.Key) bool { return k == key }, scope: key.Scope, server: key.Server, now: cmd.Now}
	case *messages.CloseScope:
		scope := (messages.Key{Scope: cmd.Scope}).Normal().Scope
		return selection{match: func(k messages.Key) bool { return k.Scope == scope }, scope: scope, now: cmd.Now, keeps: cmd.KeepHandles}
	case *messages.CloseMatching:
		of := *cmd
		return selection{match: of.Matches, server: of.Server, now: of.Now}
	case *messages.CloseServer:
		server := cmd.Server
		return selection{match: func(k messages.Key) bool { return k.Server == server }, server: server, now: cmd.Now}
	}
	return selection{match: anyKey, now: cmd.(*messages.CloseAll).Now}
}

// anyKey matches all keys.
func anyKey(messages.Key) bool { return true }

// anyServer matches all servers.
func anyServer(string) bool { return true }
