package wire

import (
	"encoding/json"
	"reflect"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/operations"
	"github.com/mcpactor/mcpactor/messages"
)

// Questions finds the exchange that a question of the server belongs to. The SDK does not say over which stream a
// question came. So the bridge adds a mark to its _meta before the SDK gets it. The zero value is ready
// for use, and its methods may be called from any goroutine.
type Questions struct {
	mu        sync.Mutex
	key       string               // of the mark in _meta; random, so that no server can set it
	last      uint64               // the last mark
	exchanges map[string]*Exchange // by mark, of operations that are not over
	marks     map[*Exchange]string
}

// Mark returns a request, as JSON, with the mark of its exchange. A request that cannot be marked
// is returned as it is.
func (q *Questions) Mark(request []byte, ex *Exchange) []byte {
	key, mark := q.markOf(ex)
	return withMeta(request, key, mark)
}

// MarkLog returns a log message, as JSON, with the name of the operation of its exchange, which may be over when the SDK
// handles the message.
func (q *Questions) MarkLog(note []byte, ex *Exchange) []byte {
	if ex.Operation == nil {
		return note
	}
	return withMeta(note, q.keyOf(), operations.RefTo(ex.Operation))
}

// LogOf removes the mark from the parameters of a log message, and returns the operation, or nothing if it has no mark.
func (q *Questions) LogOf(params *mcp.LoggingMessageParams) (of messages.OperationRef) {
	mark, marked := params.Meta[q.keyOf()]
	if !marked {
		return of
	}
	if delete(params.Meta, q.keyOf()); len(params.Meta) == 0 {
		params.Meta = nil
	}
	if data, err := json.Marshal(mark); err == nil {
		json.Unmarshal(data, &of) //nolint:errcheck // it is a mark of ours
	}
	return of
}

// Keep returns a message with its parameters, as text, in a mark: the SDK drops what it does not know of them.
func (q *Questions) Keep(message []byte) []byte {
	kept, err := with(message, "params", q.keep)
	if err != nil {
		return message
	}
	return kept
}

// KeepParams returns parameters with themselves in a mark, as Keep does.
func (q *Questions) KeepParams(params json.RawMessage) json.RawMessage {
	kept, err := q.keep(params)
	if err != nil {
		return params
	}
	return kept
}

func (q *Questions) keep(params json.RawMessage) ([]byte, error) {
	return with(params, "_meta", func(meta json.RawMessage) ([]byte, error) {
		return with(meta, q.keyOf()+verbatim, func(json.RawMessage) ([]byte, error) { return json.Marshal(string(params)) })
	})
}

// verbatim is what the key of a mark with parameters ends with.
const verbatim = "-verbatim"

// Kept removes the mark with parameters from them, and returns what Keep got, or nil.
func (q *Questions) Kept(params mcp.Params) json.RawMessage {
	if v := reflect.ValueOf(params); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	key := q.keyOf() + verbatim
	text, kept := params.GetMeta()[key].(string)
	if !kept {
		return nil
	}
	if delete(params.GetMeta(), key); len(params.GetMeta()) == 0 {
		params.SetMeta(nil)
	}
	return json.RawMessage(text)
}

// withMeta returns a message, as JSON, with a member of its _meta, or as it is if it cannot have one.
func withMeta(message []byte, key string, value any) []byte {
	marked, err := with(message, "params", func(params json.RawMessage) ([]byte, error) {
		return with(params, "_meta", func(meta json.RawMessage) ([]byte, error) {
			return with(meta, key, func(json.RawMessage) ([]byte, error) { return json.Marshal(value) })
		})
	})
	if err != nil {
		return message
	}
	return marked
}

// with returns a JSON object with one member changed. An empty text counts as an object without members.
func with(object json.RawMessage, name string, change func(json.RawMessage) ([]byte, error)) ([]byte, error) {
	members := map[string]json.RawMessage{}
	if len(object) > 0 {
		if err := json.Unmarshal(object, &members); err != nil {
			return nil, err
		}
	}
	if members == nil { // it was null
		members = map[string]json.RawMessage{}
	}
	changed, err := change(members[name])
	if err != nil {
		return nil, err
	}
	members[name] = changed
	return json.Marshal(members)
}

// prepare makes the key.
func (q *Questions) prepare() {
	if q.exchanges == nil {
		q.key = "mcpactor-" + Nonce()
		q.exchanges, q.marks = map[string]*Exchange{}, map[*Exchange]string{}
	}
}

// keyOf returns the key of the marks.
func (q *Questions) keyOf() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.prepare()
	return q.key
}

// markOf returns the mark of an exchange, and the key of the mark.
func (q *Questions) markOf(ex *Exchange) (key, mark string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.prepare()
	mark, ok := q.marks[ex]
	if !ok && !ex.IsOver() {
		q.last++
		mark = strconv.FormatUint(q.last, 10)
		q.exchanges[mark], q.marks[ex] = ex, mark
	}
	return q.key, mark
}

// Origin removes the mark from the parameters of a request, and returns its exchange, or nil if it
// has no mark. If the operation is over, it returns a new exchange of the same owner, which is over as well.
func (q *Questions) Origin(params mcp.Params, owner any) *Exchange {
	if v := reflect.ValueOf(params); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.key == "" {
		return nil
	}
	mark, marked := params.GetMeta()[q.key]
	if !marked {
		return nil
	}
	delete(params.GetMeta(), q.key)
	if len(params.GetMeta()) == 0 {
		params.SetMeta(nil)
	}
	text, _ := mark.(string)
	if ex := q.exchanges[text]; ex != nil {
		return ex
	}
	done := make(chan struct{})
	close(done)
	return &Exchange{Owner: owner, Over: done}
}

// Forget notes that an operation is over.
func (q *Questions) Forget(ex *Exchange) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if mark, ok := q.marks[ex]; ok {
		delete(q.exchanges, mark)
		delete(q.marks, ex)
	}
}
