package protocol

import (
	"fmt"
	"reflect"

	"github.com/mcpactor/mcpactor/messages"
)

// AsPointer returns a message as a T. The message may be a T, or the value that a T points
// to.
func AsPointer[T any](msg any) (T, bool) {
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

// commandPackage is the path of the package of all commands.
var commandPackage = reflect.TypeFor[messages.CallTool]().PkgPath()

// IsForeign reports whether a command is not one of package messages: a type that
// embeds one could not be copied, and a [messages.Header] alone is only a part of one.
func IsForeign(cmd messages.Command) bool {
	t := reflect.TypeOf(cmd)
	_, isHeader := cmd.(*messages.Header)
	return isHeader || t.Kind() != reflect.Pointer || t.Elem().PkgPath() != commandPackage
}

// NotCommand returns the detail of the failure for a message that is not a command.
func NotCommand(msg any) string {
	return fmt.Sprintf("%T is not a command: send one of package messages", msg)
}

// CommandOf returns a message as a command of package messages, which may have been sent as a
// value. It reports false for any other message, and for a nil pointer: the supervisor rejects
// these.
func CommandOf(msg any) (messages.Command, bool) {
	cmd, ok := AsPointer[messages.Command](msg)
	return cmd, ok && !IsForeign(cmd) && !reflect.ValueOf(cmd).IsNil()
}
