package wire

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Progress passes on the progress of the operations of one connection. It sees notifications and responses in
// the order in which they arrive, whereas the SDK handles them concurrently. The zero value is ready for use.
type Progress struct {
	mu       sync.Mutex
	prefix   string // of the tokens; it differs from that of earlier connections, on whose calls the server may still report
	last     uint64
	watchers map[string]func(*mcp.ProgressNotificationParams, json.RawMessage) // by token
}

// Nonce returns a random text. It is no secret.
func Nonce() string { return fmt.Sprintf("%016x", rand.Uint64()) }

// Watch returns the token with which the server reports to f, which also gets the parameters as they came. f must not block,
// and does not keep them.
func (p *Progress) Watch(f func(*mcp.ProgressNotificationParams, json.RawMessage)) (token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watchers == nil {
		p.watchers = map[string]func(*mcp.ProgressNotificationParams, json.RawMessage){}
		p.prefix = "mcpactor-" + Nonce() + "-"
	}
	p.last++
	token = p.prefix + strconv.FormatUint(p.last, 10)
	p.watchers[token] = f
	return token
}

// Unwatch forgets a token.
func (p *Progress) Unwatch(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.watchers, token)
}

// isIdle reports whether nobody watches, which is the usual case.
func (p *Progress) isIdle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.watchers) == 0
}

// Notify passes a progress notification to the function that watches its token.
func (p *Progress) Notify(params json.RawMessage) {
	var note mcp.ProgressNotificationParams
	if p.isIdle() || json.Unmarshal(params, &note) != nil {
		return
	}
	token, _ := note.ProgressToken.(string)
	p.mu.Lock()
	f := p.watchers[token]
	p.mu.Unlock()
	if f != nil {
		f(&note, params)
	}
}
