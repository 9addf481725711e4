package wire

import (
	"cmp"
	"encoding/json"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// header is a [messages.Header].
type header struct {
	Key        messages.Key               `json:"key"`
	ID         string                     `json:"id,omitempty"`
	Timeout    time.Duration              `json:"timeout,omitempty"` // in ns; 0 without a deadline
	Wait       time.Duration              `json:"wait,omitempty"`    // likewise, until WaitUntil
	Quiet      time.Duration              `json:"quiet,omitempty"`   // likewise
	Replay     messages.Replay            `json:"replay,omitempty"`
	Subscriber string                     `json:"subscriber,omitempty"`
	Owner      string                     `json:"owner,omitempty"`
	Handler    string                     `json:"handler,omitempty"`
	Attributes map[string]string          `json:"attributes,omitempty"`
	Trace      messages.Trace             `json:"trace,omitzero"`
	Extra      map[string]json.RawMessage `json:"extra,omitempty"`
	Verbatim   bool                       `json:"verbatim,omitempty"`
}

// set takes a header.
func (h *header) set(from *messages.Header, refs Refs) error {
	pids := pids{refs: refs}
	*h = header{
		Key: from.Key, ID: from.ID, Timeout: timeout(from.Deadline), Wait: timeout(from.WaitUntil), Quiet: from.Quiet, Replay: from.Replay, Trace: from.Trace,
		Subscriber: pids.ref("subscriber", from.Subscriber), Owner: pids.ref("owner", from.Owner), Handler: pids.ref("handler", from.Handler),
		Extra: from.Extra, Verbatim: from.Verbatim,
	}
	if from.Attributes.Len() > 0 {
		h.Attributes = map[string]string{}
		for key, value := range from.Attributes.All() {
			h.Attributes[key] = value
		}
	}
	if pids.err != nil {
		return pids.err
	}
	return checkUTF8(reflect.ValueOf(h).Elem())
}

func (h *header) header(refs Refs) (messages.Header, error) {
	pids := pids{refs: refs}
	to := messages.Header{
		Key: h.Key, ID: h.ID, Deadline: deadline(h.Timeout), WaitUntil: deadline(h.Wait), Quiet: h.Quiet, Replay: h.Replay, Trace: h.Trace, Attributes: messages.NewAttributes(h.Attributes),
		Subscriber: pids.pid("subscriber", h.Subscriber), Owner: pids.pid("owner", h.Owner), Handler: pids.pid("handler", h.Handler),
		Extra: h.Extra, Verbatim: h.Verbatim,
	}
	return to, pids.err
}

// origin is a [messages.Origin].
type origin struct {
	Key       messages.Key          `json:"key"`
	Question  string                `json:"question"`
	Operation messages.OperationRef `json:"operation,omitzero"`
	Timeout   time.Duration         `json:"timeout,omitempty"` // in ns; 0 without a deadline
}

func newOrigin(o *messages.Origin) origin {
	return origin{Key: o.Key, Question: o.Question, Operation: o.Operation, Timeout: timeout(o.Deadline)}
}

func (o *origin) origin() messages.Origin {
	return messages.Origin{Key: o.Key, Question: o.Question, Operation: o.Operation, Deadline: deadline(o.Timeout)}
}

// timeout returns the time until a deadline, which is negative if it has passed, or 0 if there is none.
func timeout(deadline time.Time) time.Duration {
	if deadline.IsZero() {
		return 0
	}
	return cmp.Or(time.Until(deadline), -1)
}

func deadline(timeout time.Duration) time.Time {
	if timeout == 0 {
		return time.Time{}
	}
	return time.Now().Add(timeout)
}

// pids converts PIDs, and keeps the first error.
type pids struct {
	refs Refs
	err  error
}

func (p *pids) ref(field string, pid *actor.PID) (ref string) {
	if pid == nil {
		return ""
	}
	if p.refs != nil {
		ref = p.refs.Ref(pid)
	}
	if ref == "" && p.err == nil {
		p.err = &Error{Field: field, Problem: "the PID has no text"}
	}
	return ref
}

func (p *pids) pid(field, ref string) (pid *actor.PID) {
	if ref == "" {
		return nil
	}
	if p.refs != nil {
		pid = p.refs.PID(ref)
	}
	if pid == nil && p.err == nil {
		p.err = &Error{Field: field, Problem: "the text has no PID"}
	}
	return pid
}

// checkUTF8 returns an error if a name in a command is not valid UTF-8. JSON would change it to
// another name, which may be valid. It does not check the parameters, which are sent to a server as
// JSON in any case.
func checkUTF8(v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return &Error{Problem: "is not valid UTF-8"}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if name, ok := jsonName(v.Type().Field(i)); ok {
				if err := checkUTF8(v.Field(i)); err != nil {
					return within(name, err)
				}
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			if checkUTF8(entries.Key()) != nil || checkUTF8(entries.Value()) != nil {
				return &Error{Problem: "is not valid UTF-8"}
			}
		}
	}
	return nil
}
