package wire

import (
	"cmp"
	"encoding/json"
	"reflect"
	"regexp"
	"strings"

	"github.com/mcpactor/mcpactor/messages"
)

// The names on the wire of all messages. They must not change. Those of the operations and of their results
// are the names of their types.
func init() {
	register("tool-result", encodeToolResult, decodeToolResult)
	fields := map[reflect.Type]reflect.Type{
		reflect.TypeFor[messages.CallTool](): reflect.TypeFor[callTool](),
		reflect.TypeFor[messages.Custom]():   reflect.TypeFor[custom](),
	}
	for op, reply := range messages.Operations() {
		of, result := reflect.TypeOf(op).Elem(), reflect.TypeOf(reply).Elem()
		operation(of, cmp.Or(fields[of], fieldsOf(of)))
		if byType[result] == nil { // several have the same
			plain(kebabCase(result.Name()), result)
		}
	}

	command[messages.Cancel]("cancel")
	command[messages.CancelScope]("cancel-scope")
	command[messages.CloseSession]("close-session")
	command[messages.CloseScope]("close-scope")
	command[messages.CloseServer]("close-server")
	command[messages.CloseMatching]("close-matching")
	command[messages.CloseAll]("close-all")
	command[messages.Restart]("restart")
	command[messages.Forget]("forget")
	command[messages.Pin]("pin")
	command[messages.Check]("check")
	command[messages.Inspect]("inspect")
	command[messages.Tail]("tail")
	command[messages.Bind]("bind")

	Register[messages.Failure]("failure")
	Register[messages.Closed]("closed")
	Register[messages.Bound]("bound")
	Register[messages.Pinned]("pinned")
	Register[messages.Status]("status")
	Register[messages.Done]("done")
	register("snapshot", func(m *messages.Snapshot, _ Refs) (any, error) {
		return snapshot{m.ID, m}, nil
	}, func(body []byte, _ Refs) (*messages.Snapshot, error) {
		m := snapshot{Snapshot: &messages.Snapshot{}}
		err := unmarshal(body, &m)
		m.Snapshot.ID = m.ID
		return m.Snapshot, err
	})

	Register[messages.SessionOpened]("session-opened")
	Register[messages.SessionExpired]("session-expired")
	Register[messages.SessionLost]("session-lost")
	Register[messages.SessionRestarting]("session-restarting")
	Register[messages.SessionRestarted]("session-restarted")
	Register[messages.SessionGaveUp]("session-gave-up")
	Register[messages.SessionEvicted]("session-evicted")
	Register[messages.SessionClosed]("session-closed")
	Register[messages.CallReplayed]("call-replayed")
	Register[messages.TaskChanged]("task-changed")
	Register[messages.CatalogueChanged]("catalogue-changed")
	Register[messages.OwnerTerminated]("owner-terminated")
	Register[messages.ToolsChanged]("tools-changed")
	Register[messages.PromptsChanged]("prompts-changed")
	Register[messages.ResourcesChanged]("resources-changed")
	Register[messages.ResourceUpdated]("resource-updated")
	Register[messages.ServerLog]("server-log")
	Register[messages.ElicitationCompleted]("elicitation-completed")
	Register[messages.CustomNotification]("custom-notification")
	Register[messages.Progress]("progress")
	Register[messages.StderrLine]("stderr-line")

	question[messages.Elicit]("elicit")
	question[messages.Sample]("sample")
	question[messages.ListRoots]("list-roots")
	question[messages.Withdrawn]("withdrawn")
	Register[messages.Elicited]("elicited")
	Register[messages.Sampled]("sampled")
	Register[messages.Roots]("roots")
	Register[messages.Refusal]("refusal")
}

// command registers a command that is no operation.
func command[T any](name string) {
	of := reflect.TypeFor[T]()
	fields := fieldsOf(of)
	add(of, &format{name, func(m any, refs Refs) (any, error) { return fieldsFrom(m, fields, refs) }, func(body []byte, refs Refs) (any, error) {
		w := reflect.New(fields)
		if err := unmarshal(body, w.Interface()); err != nil {
			return nil, err
		}
		return messageFrom(w.Elem(), of, refs)
	}})
}

// operation registers an operation, whose fields cross as those of a struct.
func operation(of, fields reflect.Type) {
	add(of, &format{kebabCase(of.Name()), func(m any, refs Refs) (any, error) {
		h, err := newHeader(m.(messages.Operation).Head(), refs)
		if err != nil {
			return nil, within("header", err)
		}
		w, err := fieldsFrom(m, fields, refs)
		return struct {
			Header header `json:"header"`
			Fields any    `json:"fields"`
		}{h, w}, within("fields", err)
	}, func(body []byte, refs Refs) (any, error) {
		var h header
		m, err := parts(body, "header", &h, of, fields, refs)
		if err != nil {
			return nil, err
		}
		*m.(messages.Operation).Head(), err = h.header(refs)
		return m, within("header", err)
	}})
}

// question registers a message to a handler.
func question[T any](name string) {
	type asked interface{ GetOrigin() *messages.Origin }
	of := reflect.TypeFor[T]()
	fields := fieldsOf(of)
	add(of, &format{name, func(m any, refs Refs) (any, error) {
		w, err := fieldsFrom(m, fields, refs)
		return struct {
			Origin origin `json:"origin"`
			Fields any    `json:"fields"`
		}{newOrigin(m.(asked).GetOrigin()), w}, within("fields", err)
	}, func(body []byte, refs Refs) (any, error) {
		var o origin
		m, err := parts(body, "origin", &o, of, fields, refs)
		if err != nil {
			return nil, err
		}
		*m.(asked).GetOrigin() = o.origin()
		return m, nil
	}})
}

// hump is where a new word begins in the name of a type.
var hump = regexp.MustCompile(`([a-z])([A-Z])`)

// kebabCase returns the name on the wire of a type.
func kebabCase(name string) string { return strings.ToLower(hump.ReplaceAllString(name, "${1}-$2")) }

// parted is a body with a header or an origin, and with other fields.
type parted struct {
	Header part `json:"header"`
	Origin part `json:"origin"`
	Fields part `json:"fields"`
}

// parts returns a pointer to a message of a type, from a body with a header or an origin, which head
// selects, and with other fields.
func parts(body []byte, head string, into any, of, fields reflect.Type, refs Refs) (any, error) {
	var all parted
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, undecoded(body, &all, err)
	}
	first := all.Header
	if head == "origin" {
		first = all.Origin
	}
	if err := unmarshal(first, into); err != nil {
		return nil, within(head, err)
	}
	w := reflect.New(fields)
	decode := func(data []byte) error { return unmarshal(data, w.Interface()) }
	if own, ok := w.Interface().(json.Unmarshaler); ok && all.Fields != nil { // it calls unmarshal itself
		decode = own.UnmarshalJSON
	}
	if err := decode(all.Fields); err != nil {
		return nil, within("fields", err)
	}
	m, err := messageFrom(w.Elem(), of, refs)
	return m, within("fields", err)
}
