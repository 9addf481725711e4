package wire

import (
	"encoding/json"
	"reflect"

	"github.com/mcpactor/mcpactor/messages"
)

// The names on the wire of all messages. They must not change.
func init() {
	operation[messages.CallTool, callTool]("call-tool")
	operation[messages.ListTools, onlyHeader]("list-tools")
	operation[messages.ListResources, onlyHeader]("list-resources")
	operation[messages.ListResourceTemplates, onlyHeader]("list-resource-templates")
	operation[messages.ReadResource, readResource]("read-resource")
	operation[messages.ListPrompts, onlyHeader]("list-prompts")
	operation[messages.GetPrompt, getPrompt]("get-prompt")
	operation[messages.Complete, complete]("complete")
	operation[messages.Subscribe, withURI]("subscribe")
	operation[messages.Unsubscribe, withURI]("unsubscribe")
	operation[messages.SetLogLevel, setLogLevel]("set-log-level")
	operation[messages.SetRoots, setRoots]("set-roots")
	operation[messages.Ping, onlyHeader]("ping")
	operation[messages.Open, onlyHeader]("open")
	operation[messages.Custom, custom]("custom")

	command[messages.Cancel, cancel]("cancel")
	command[messages.CancelScope, cancelScope]("cancel-scope")
	command[messages.CloseSession, closeSession]("close-session")
	command[messages.CloseScope, closeScope]("close-scope")
	command[messages.CloseServer, closeServer]("close-server")
	command[messages.CloseMatching, closeMatching]("close-matching")
	command[messages.CloseAll, closeAll]("close-all")
	command[messages.Restart, restart]("restart")
	command[messages.Forget, forget]("forget")
	command[messages.Pin, pin]("pin")
	command[messages.Inspect, inspect]("inspect")
	converted("tail", func(m *messages.Tail, refs Refs) (tail, error) {
		pids := pids{refs: refs}
		return tail{m.ID, m.Key, pids.ref("subscriber", m.Subscriber)}, pids.err
	}, func(m *tail, refs Refs) (*messages.Tail, error) {
		pids := pids{refs: refs}
		return &messages.Tail{ID: m.ID, Key: m.Key, Subscriber: pids.pid("subscriber", m.Subscriber)}, pids.err
	})
	converted("bind", func(m *messages.Bind, refs Refs) (bind, error) {
		pids := pids{refs: refs}
		return bind{m.ID, m.Scope, pids.ref("owner", m.Owner), pids.ref("handler", m.Handler)}, pids.err
	}, func(m *bind, refs Refs) (*messages.Bind, error) {
		pids := pids{refs: refs}
		return &messages.Bind{ID: m.ID, Scope: m.Scope, Owner: pids.pid("owner", m.Owner), Handler: pids.pid("handler", m.Handler)}, pids.err
	})

	register("tool-result", encodeToolResult, decodeToolResult)
	Register[messages.ToolList]("tool-list")
	Register[messages.ResourceList]("resource-list")
	Register[messages.ResourceTemplateList]("resource-template-list")
	Register[messages.ResourceContents]("resource-contents")
	Register[messages.PromptList]("prompt-list")
	Register[messages.Prompt]("prompt")
	Register[messages.Completion]("completion")
	Register[messages.CustomResult]("custom-result")
	Register[messages.Ack]("ack")
	Register[messages.Pong]("pong")
	Register[messages.SessionInfo]("session-info")
	Register[messages.Failure]("failure")
	Register[messages.Closed]("closed")
	Register[messages.Bound]("bound")
	Register[messages.Pinned]("pinned")
	Register[messages.Done]("done")
	converted("snapshot", func(m *messages.Snapshot, _ Refs) (snapshot, error) {
		return snapshot{m.ID, m}, nil
	}, func(m *snapshot, _ Refs) (*messages.Snapshot, error) {
		if m.Snapshot == nil {
			m.Snapshot = &messages.Snapshot{}
		}
		m.Snapshot.ID = m.ID
		return m.Snapshot, nil
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
	Register[messages.OwnerTerminated]("owner-terminated")
	Register[messages.ToolsChanged]("tools-changed")
	Register[messages.PromptsChanged]("prompts-changed")
	Register[messages.ResourcesChanged]("resources-changed")
	Register[messages.ResourceUpdated]("resource-updated")
	Register[messages.ServerLog]("server-log")
	Register[messages.CustomNotification]("custom-notification")
	Register[messages.Progress]("progress")
	Register[messages.StderrLine]("stderr-line")

	question[messages.Elicit, elicit]("elicit")
	question[messages.Sample, sample]("sample")
	question[messages.ListRoots, onlyOrigin]("list-roots")
	question[messages.Withdrawn, withdrawn]("withdrawn")
	Register[messages.Elicited]("elicited")
	Register[messages.Sampled]("sampled")
	Register[messages.Roots]("roots")
	Register[messages.Refusal]("refusal")
}

// converted registers a message that crosses as a W.
func converted[T, W any](name string, to func(*T, Refs) (W, error), from func(*W, Refs) (*T, error)) {
	register(name, func(m *T, refs Refs) (any, error) {
		w, err := to(m, refs)
		if _, named := any(m).(messages.Command); named && err == nil {
			err = checkUTF8(reflect.ValueOf(w))
		}
		return &w, err
	}, func(body []byte, refs Refs) (*T, error) {
		w := new(W)
		if err := unmarshal(body, w); err != nil {
			return nil, err
		}
		return from(w, refs)
	})
}

// command registers a command without PIDs. W has the same fields.
func command[T, W any](name string) {
	converted(name, func(m *T, _ Refs) (W, error) {
		return *same[W](m), nil
	}, func(w *W, _ Refs) (*T, error) {
		return same[T](w), nil
	})
}

// operation registers an operation. W has the same fields.
func operation[T, W any](name string) {
	register(name, func(m *T, refs Refs) (any, error) {
		h, err := newHeader(any(m).(messages.Operation).Head(), refs)
		if err != nil {
			return nil, within("header", err)
		}
		w := same[W](m)
		return struct {
			Header header `json:"header"`
			Fields *W     `json:"fields"`
		}{h, w}, within("fields", checkUTF8(reflect.ValueOf(w).Elem()))
	}, func(body []byte, refs Refs) (*T, error) {
		var h header
		w, err := parts[W](body, "header", &h)
		if err != nil {
			return nil, err
		}
		m := same[T](w)
		*any(m).(messages.Operation).Head(), err = h.header(refs)
		return m, within("header", err)
	})
}

// question registers a message to a handler. W has the same fields.
func question[T, W any](name string) {
	type asked interface{ GetOrigin() *messages.Origin }
	register(name, func(m *T, _ Refs) (any, error) {
		return struct {
			Origin origin `json:"origin"`
			Fields *W     `json:"fields"`
		}{newOrigin(any(m).(asked).GetOrigin()), same[W](m)}, nil
	}, func(body []byte, _ Refs) (*T, error) {
		var o origin
		w, err := parts[W](body, "origin", &o)
		if err != nil {
			return nil, err
		}
		m := same[T](w)
		*any(m).(asked).GetOrigin() = o.origin()
		return m, nil
	})
}

// parted is a body with a header or an origin, and with other fields.
type parted struct {
	Header part `json:"header"`
	Origin part `json:"origin"`
	Fields part `json:"fields"`
}

// parts decodes a body with a header or an origin, which head selects, and with other fields.
func parts[W any](body []byte, head string, into any) (*W, error) {
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
	w := new(W)
	if own, ok := any(w).(json.Unmarshaler); ok && all.Fields != nil { // it calls unmarshal itself
		return w, within("fields", own.UnmarshalJSON(all.Fields))
	}
	return w, within("fields", unmarshal(all.Fields, w))
}

// same returns a pointer to the same struct as another type that has the same fields.
func same[To, From any](from *From) *To {
	return reflect.ValueOf(from).Convert(reflect.TypeFor[*To]()).Interface().(*To)
}
