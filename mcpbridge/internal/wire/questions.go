package wire

import (
	"encoding/json"
	"reflect"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
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
	marked, err := with(request, "params", func(params json.RawMessage) ([]byte, error) {
		return with(params, "_meta", func(meta json.RawMessage) ([]byte, error) {
			return with(meta, key, func(json.RawMessage) ([]byte, error) { return json.Marshal(mark) })
		})
	})
	if err != nil {
		return request
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

// markOf returns the mark of an exchange, and the key of the mark.
func (q *Questions) markOf(ex *Exchange) (key, mark string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.exchanges == nil {
		q.key = "mcpactor-" + Nonce()
		q.exchanges, q.marks = map[string]*Exchange{}, map[*Exchange]string{}
	}
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
