package registry

import (
	"fmt"
	"reflect"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

// onUnknown handles a message of an unknown type. If it is a command that was sent as a
// value, the command is handled. Any other message is rejected, and logged once for each
// type.
func (r *registry) onUnknown(msg any, from *actor.PID) {
	if cmd, ok := protocol.AsPointer[messages.Command](msg); ok && !protocol.IsForeign(cmd) {
		r.onCommand(cmd, from)
		return
	}
	kind := fmt.Sprintf("%T", msg)
	if !r.unknownTypes[kind] {
		r.unknownTypes[kind] = true
		r.cfg.Logger.Warn().Str("type", kind).Msg("supervisor received a message of an unknown type")
	}
	r.respond(from, messages.NewFailure(nil, messages.CodeInvalid, protocol.NotCommand(msg)))
}

// isForeign reports whether a command is not one of package messages. It handles such a command as an unknown message.
func (r *registry) isForeign(cmd messages.Command, from *actor.PID) bool {
	foreign := protocol.IsForeign(cmd)
	if foreign {
		r.onUnknown(cmd, from)
	}
	return foreign
}

// bugDetail is the detail of the failure of a command whose handling has panicked.
const bugDetail = "a bug in the registry, see the log"

// recoverBug recovers from a panic, and replies to the current command. A nil pointer is
// the mistake of the caller, and is not logged.
func (r *registry) recoverBug(msg any, from *actor.PID) {
	reason := recover()
	if reason == nil {
		return
	}
	handled := msg
	switch by := msg.(type) {
	case *protocol.ClientCall:
		msg = by.Op
	case *protocol.ResentCall:
		msg = by.Op
	}
	cmd, ok := protocol.AsPointer[messages.Command](msg)
	if v := reflect.ValueOf(cmd); ok && v.Kind() == reflect.Pointer && v.IsNil() {
		r.respond(from, messages.NewFailure(nil, messages.CodeInvalid, fmt.Sprintf("the command is a nil %T", cmd)))
		return
	}
	r.cfg.Logger.Error().Type("message", handled).Interface("reason", reason).Bytes("stack", debug.Stack()).Msg("registry panicked")
	switch msg.(type) {
	case *protocol.Reload, *protocol.Release:
		ok = true
	}
	if answered := r.jobs.Panicked(messages.CodeInternal, bugDetail); ok && !answered {
		r.respond(from, messages.NewFailure(cmd, messages.CodeInternal, bugDetail))
	}
	r.rest() // it may have panicked in what was due
}
