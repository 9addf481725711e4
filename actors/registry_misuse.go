package actors

import (
	"fmt"
	"reflect"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// pointed returns a message as a T, also when it was sent as a value instead of a
// pointer.
func asPointer[T any](msg any) (T, bool) {
	if t, ok := msg.(T); ok {
		return t, true
	}
	v := reflect.ValueOf(msg)
	if v.Kind() != reflect.Struct {
		var none T
		return none, false
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	t, ok := p.Interface().(T)
	return t, ok
}

// ours is the package that all commands are of.
var commandPackage = reflect.TypeFor[messages.CallTool]().PkgPath()

// foreign reports whether a command is of a type around one of ours. Nobody knows how
// to copy it, or how to run it.
func isForeign(cmd messages.Command) bool {
	t := reflect.TypeOf(cmd)
	return t.Kind() != reflect.Pointer || t.Elem().PkgPath() != commandPackage
}

// onStranger handles a message of a type that is none of ours. It may be a command that
// was sent as a value. Any other is refused, and logged once for each type.
func (r *registry) onUnknown(c actor.Context, msg any) {
	if cmd, ok := asPointer[messages.Command](msg); ok && !isForeign(cmd) {
		r.onCommand(c, cmd)
		return
	}
	kind := fmt.Sprintf("%T", msg)
	if !r.unknownTypes[kind] {
		r.unknownTypes[kind] = true
		r.cfg.Logger.Warn().Str("type", kind).Msg("supervisor got a message it does not know")
	}
	r.respond(c, messages.NewFailure(nil, messages.CodeInvalid, kind+" is no command: send one of package messages"))
}

// guard survives a bug: the command at hand is answered, the rest goes on. A nil
// pointer is the caller's mistake.
func (r *registry) recoverBug(c actor.Context) {
	reason := recover()
	if reason == nil {
		return
	}
	cmd, ok := asPointer[messages.Command](c.Message())
	if v := reflect.ValueOf(cmd); ok && v.Kind() == reflect.Pointer && v.IsNil() {
		r.respond(c, messages.NewFailure(nil, messages.CodeInvalid, fmt.Sprintf("the command is a nil %T", cmd)))
		return
	}
	r.cfg.Logger.Error().Type("message", c.Message()).Interface("reason", reason).Bytes("stack", debug.Stack()).Msg("registry panicked")
	if _, reload := c.Message().(*Reload); ok || reload {
		r.respond(c, messages.NewFailure(cmd, messages.CodeInternal, "a bug in the registry, see the log"))
	}
}
