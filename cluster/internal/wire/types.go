package wire

import (
	"reflect"
	"regexp"
	"strings"

	"github.com/mcpactor/mcpactor/messages"
)

// The names on the wire of all messages. They must not change. Those of the operations and of their results
// are the names of their types.
func init() {
	register("tool-result", encodeToolResult, decodeToolResult)
	for op, reply := range messages.Operations() {
		of, result := reflect.TypeOf(op).Elem(), reflect.TypeOf(reply).Elem()
		operation(of)
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
	register("snapshot", func(m *messages.Snapshot, _ Refs) ([]byte, error) {
		return marshal(snapshot{m.ID, m})
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
	fields := formOf(of)
	add(of, &format{name, func(m any, refs Refs) ([]byte, error) {
		w, err := fields.encode(m, refs)
		if err != nil {
			return nil, err
		}
		return marshal(w)
	}, func(body []byte, refs Refs) (any, error) {
		w := reflect.New(fields.wire)
		if err := unmarshal(body, w.Interface()); err != nil {
			return nil, err
		}
		return fields.decode(w.Elem(), refs)
	}})
}

// operation registers an operation, whose fields cross beside its header.
func operation(of reflect.Type) {
	fields := formOf(of)
	whole := withHead[header]("header", fields.wire)
	add(of, &format{kebabCase(of.Name()), func(m any, refs Refs) ([]byte, error) {
		var whole struct {
			Header header `json:"header"`
			Fields any    `json:"fields"`
		}
		if err := whole.Header.set(m.(messages.Operation).Head(), refs); err != nil {
			return nil, within("header", err)
		}
		var err error
		if whole.Fields, err = fields.encode(m, refs); err != nil {
			return nil, within("fields", err)
		}
		return marshal(&whole)
	}, func(body []byte, refs Refs) (any, error) {
		w := reflect.New(whole)
		if err := unmarshal(body, w.Interface()); err != nil {
			return nil, err
		}
		m, err := fields.decode(w.Elem().Field(1), refs)
		if err != nil {
			return nil, within("fields", err)
		}
		*m.(messages.Operation).Head(), err = w.Elem().Field(0).Addr().Interface().(*header).header(refs)
		return m, within("header", err)
	}})
}

// question registers a message to a handler, whose fields cross beside its origin.
func question[T any](name string) {
	type asked interface{ GetOrigin() *messages.Origin }
	of := reflect.TypeFor[T]()
	fields := formOf(of)
	whole := withHead[origin]("origin", fields.wire)
	add(of, &format{name, func(m any, refs Refs) ([]byte, error) {
		w, err := fields.encode(m, refs)
		if err != nil {
			return nil, within("fields", err)
		}
		return marshal(&struct {
			Origin origin `json:"origin"`
			Fields any    `json:"fields"`
		}{newOrigin(m.(asked).GetOrigin()), w})
	}, func(body []byte, refs Refs) (any, error) {
		w := reflect.New(whole)
		if err := unmarshal(body, w.Interface()); err != nil {
			return nil, err
		}
		m, err := fields.decode(w.Elem().Field(1), refs)
		if err != nil {
			return nil, within("fields", err)
		}
		*m.(asked).GetOrigin() = w.Elem().Field(0).Addr().Interface().(*origin).origin()
		return m, nil
	}})
}

// withHead returns the struct of a message that has a head beside its fields.
func withHead[T any](name string, fields reflect.Type) reflect.Type {
	return reflect.StructOf([]reflect.StructField{
		{Name: "Head", Type: reflect.TypeFor[T](), Tag: reflect.StructTag(`json:"` + name + `"`)},
		{Name: "Fields", Type: fields, Tag: `json:"fields"`},
	})
}

// hump is where a new word begins in the name of a type.
var hump = regexp.MustCompile(`([a-z])([A-Z])`)

// kebabCase returns the name on the wire of a type.
func kebabCase(name string) string { return strings.ToLower(hump.ReplaceAllString(name, "${1}-$2")) }
