package relay

import (
	"reflect"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/dispatch"
)

// Prompt is implemented by processes and mailboxes that take a message at once, and run no code of
// others.
type Prompt interface{ Prompt() }

// isPrompt reports whether a process only queues what it is sent.
func isPrompt(process actor.Process) bool {
	of, is := process.(*actor.ActorProcess)
	if !is {
		_, is = process.(Prompt)
		return is
	}
	if !usual.known {
		return false
	}
	mailbox := reflect.ValueOf(of).Elem().Field(usual.ofProcess).Elem()
	if mailbox.Type() != usual.mailbox {
		return mailbox.Type().Implements(usual.prompt)
	}
	fields := mailbox.Elem()
	return fields.Field(usual.middlewares).Len() == 0 &&
		isOneOf(fields.Field(usual.queue), usual.queues) && isOneOf(fields.Field(usual.dispatcher), usual.dispatchers)
}

// isOneOf reports whether the value of an interface has one of the types.
func isOneOf(value reflect.Value, types []reflect.Type) bool {
	value = value.Elem()
	return value.IsValid() && slices.Contains(types, value.Type())
}

// layout says how the usual mailbox of Proto.Actor is made. Its fields are not exported, and nothing
// else tells what an actor does with a message before it is queued. With a version of Proto.Actor that
// is made otherwise, known is false, and no mailbox but our own is prompt.
type layout struct {
	known                                     bool
	prompt, mailbox                           reflect.Type
	ofProcess, queue, middlewares, dispatcher int // the positions of fields
	queues, dispatchers                       []reflect.Type
}

var usual = func() (l layout) {
	l.known = true
	field := func(of reflect.Type, name string) int {
		f, there := of.FieldByName(name)
		if !there {
			l.known = false
			return 0
		}
		return f.Index[0]
	}
	l.prompt, l.mailbox = reflect.TypeFor[Prompt](), reflect.TypeOf(actor.Unbounded()())
	l.ofProcess = field(reflect.TypeFor[actor.ActorProcess](), "mailbox")
	fields := l.mailbox.Elem()
	l.queue, l.middlewares, l.dispatcher = field(fields, "userMailbox"), field(fields, "middlewares"), field(fields, "dispatcher")
	if !l.known {
		return l
	}
	for _, queued := range []actor.MailboxProducer{actor.Unbounded(), actor.UnboundedLockfree()} {
		l.queues = append(l.queues, reflect.ValueOf(queued()).Elem().Field(l.queue).Elem().Type())
	}
	l.dispatchers = []reflect.Type{reflect.TypeOf(actor.NewDefaultDispatcher(0)), reflect.TypeFor[*dispatch.Dispatcher]()}
	return l
}()
