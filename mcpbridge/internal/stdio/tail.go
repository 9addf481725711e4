package stdio

import (
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
)

// tailSize is how much of a server's stderr is kept.
const tailSize = 4 << 10

// tail keeps the last bytes that a server wrote to stderr.
type tail struct {
	mu  sync.Mutex
	buf []byte // at most tailSize
}

// drain reads r to its end, so that a process that writes to it never waits for us.
func (t *tail) drain(r io.Reader, lines *lines) {
	buf := make([]byte, 512) // most servers write little, and it stays for as long as they run
	for {
		n, err := r.Read(buf)
		t.write(buf[:n])
		lines.write(buf[:n])
		if err != nil {
			lines.end()
			return
		}
	}
}

// write keeps the end of b, as far as there is room.
func (t *tail) write(b []byte) {
	b = b[max(0, len(b)-tailSize):]
	t.mu.Lock()
	defer t.mu.Unlock()
	if over := len(t.buf) + len(b) - tailSize; over > 0 {
		t.buf = slices.Delete(t.buf, 0, over)
	}
	t.buf = append(t.buf, b...)
}

// last returns the end of what was written, as text of at most about limit bytes that is fit for
// a log line.
func (t *tail) last(limit int, secrets ...string) string {
	t.mu.Lock()
	text, cut := string(t.buf), len(t.buf) == tailSize
	t.mu.Unlock()
	if cut {
		text = dropEnd(text, secrets)
	}
	text = redact.Line(text, secrets...)
	if over := len(text) - limit; over > 0 {
		text = "…" + strings.TrimSpace(strings.ToValidUTF8(text[over:], ""))
	}
	return text
}

// dropEnd drops the end of a secret from the beginning of a text: the rest of the secret may have
// been cut off.
func dropEnd(text string, secrets []string) string {
	for _, s := range secrets {
		for n := len(s) - 1; n >= redact.MinSecret; n-- {
			if strings.HasPrefix(text, s[len(s)-n:]) {
				return text[n:]
			}
		}
	}
	return text
}
