package refusal

import "github.com/mcpactor/mcpactor/messages"

// requirement is what must hold for a command.
type requirement struct {
	key     messages.Key // of the failure; zero for a command without one
	invalid error        // why the key, the scope or the pattern is invalid, or nil
	server  *string      // must be configured; nil if none is named
	running bool         // the supervisor does not stop
}

// requirementOf returns what must hold for a command that is no operation.
func requirementOf(cmd messages.Command) (must requirement) {
	ofKey := func(key messages.Key) requirement {
		key = key.Normal()
		return requirement{key: key, invalid: key.Validate(), server: &key.Server}
	}
	ofScope := func(scope string) requirement {
		return requirement{invalid: messages.Key{Scope: scope}.Normal().Validate()}
	}
	switch cmd := cmd.(type) {
	case *messages.CloseSession:
		must = ofKey(cmd.Key)
	case *messages.CloseScope:
		must = ofScope(cmd.Scope)
	case *messages.CloseServer:
		must.server = &cmd.Server
	case *messages.CloseMatching:
		if must.invalid = cmd.Validate(); cmd.Server != "" {
			must.server = &cmd.Server
		}
	case *messages.Check:
		must = ofKey(cmd.Key)
	case *messages.Restart:
		must = ofKey(cmd.Key)
		must.running = true
	case *messages.Pin:
		must = ofKey(cmd.Key)
		must.running = true
	case *messages.Forget:
		must.server = &cmd.Server
	case *messages.CancelScope:
		must = ofScope(cmd.Scope)
	case *messages.ListHandles:
		must = ofScope(cmd.Scope)
	case *messages.ReleaseHandles:
		must = ofScope(cmd.Scope)
	case *messages.Bind:
		must = ofScope(cmd.Scope)
		must.running = true
	}
	return must
}

// OfCommand returns the failure for a command that is no operation, and is not accepted, or nil.
func (r *Refusal) OfCommand(cmd messages.Command) *messages.Failure {
	var f *messages.Failure
	switch must := requirementOf(cmd); {
	case must.invalid != nil:
		return messages.NewFailure(cmd, messages.CodeInvalid, must.invalid.Error())
	case must.running && r.table.Stopping:
		f = messages.NewFailure(cmd, messages.CodeDraining, stopping)
		f.Key = must.key
	case must.server != nil && r.table.Servers[*must.server] == nil:
		f = messages.NewFailure(cmd, messages.CodeUnknownServer, r.table.Servers.Unknown(*must.server))
		f.Key = must.key
	}
	return f
}
