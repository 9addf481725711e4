package registry

import (
	"fmt"
	"reflect"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// describe says what a message is about. Two messages that differ must not have one description: goroutines that come
// to wait at once are ordered by it.
func describe(message any) string {
	message = actor.UnwrapEnvelopeMessage(message)
	about := ""
	switch msg := message.(type) {
	case *contract.Call:
		about = msg.Op.RequestID()
	case *contract.CallReplied:
		about = msg.Call.Op.RequestID() + " " + string(msg.Code)
	case *contract.CallsHandedBack:
		about = fmt.Sprint(len(msg.Calls))
	case *contract.Faulted:
		about = msg.Fault.Error()
	case *contract.Drain:
		about = fmt.Sprintf("%+v", *msg)
	case *contract.Directive:
		about = fmt.Sprintf("gave up %v, fail parked %v", msg.GaveUp, msg.FailParked)
	case *contract.ControlWanted:
		about = table.Of(msg.Of).Key.String()
	case *contract.ControlOpened:
		about = table.Of(msg.Of.Of).Key.String()
	case *contract.ControlEnded:
		about = table.Of(msg.Of.Of).Key.String()
	case *contract.AddressFound:
		about = table.Of(msg.Of).Key.String()
	case *contract.HandshakeAnswered:
		about = table.Of(msg.Of).Key.String()
	case messages.Command:
		about = msg.RequestID()
	case interface{ About() string }: // of interceptors and askers
		about = msg.About()
	default:
		if k := callOf(message); k != nil {
			about = k.Op.RequestID()
		}
	}
	if about == "" {
		return fmt.Sprintf("%T", message)
	}
	return fmt.Sprintf("%T %s", message, about)
}

// callOf returns the call that a message of package session is about, or nil.
func callOf(message any) *contract.Call {
	v := reflect.ValueOf(message)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil
	}
	field := v.Elem().FieldByName("call")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*contract.Call]() {
		return nil
	}
	return (*contract.Call)(field.UnsafePointer())
}
