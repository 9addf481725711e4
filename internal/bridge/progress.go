package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/bridge/rpc"
)

// progress passes on how far the operations of one connection are. It listens at
// the wire, where what comes before an answer is seen before it; the SDK hands out
// notifications and answers side by side.
type progress struct {
	mu        sync.Mutex
	prefix    string // of its tokens: calls of the connection before may still tell of themselves
	last      uint64
	listeners map[string]func(*mcp.ProgressNotificationParams) // by token
}

// nonce returns what tells a connection from all others. It is no secret.
func nonce() string { return fmt.Sprintf("%016x", rand.Uint64()) }

// listen returns the token that makes the server tell f. f must not block.
func (p *progress) listen(f func(*mcp.ProgressNotificationParams)) (token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listeners == nil {
		p.listeners = map[string]func(*mcp.ProgressNotificationParams){}
		p.prefix = "mcpactor-" + nonce() + "-"
	}
	p.last++
	token = p.prefix + strconv.FormatUint(p.last, 10)
	p.listeners[token] = f
	return token
}

func (p *progress) forget(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.listeners, token)
}

// idle reports whether nobody listens, which is the usual case.
func (p *progress) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.listeners) == 0
}

// hear tells who listens to the token of a notification.
func (p *progress) hear(params json.RawMessage) {
	var note mcp.ProgressNotificationParams
	if p.idle() || json.Unmarshal(params, &note) != nil {
		return
	}
	token, _ := note.ProgressToken.(string)
	p.mu.Lock()
	f := p.listeners[token]
	p.mu.Unlock()
	if f != nil {
		f(&note)
	}
}

// hearEvent hears an event of a stream, if it is one of progress.
func (p *progress) hearEvent(event []byte) {
	if p.idle() || !bytes.Contains(event, []byte(rpc.MethodProgress)) {
		return
	}
	var msg struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if json.Unmarshal(rpc.DataOf(event), &msg) == nil && msg.Method == rpc.MethodProgress {
		p.hear(msg.Params)
	}
}
