package stdio

import (
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
)

// tailSize is how much of the output of a server is kept.
const tailSize = 16 << 10 // a dump of all goroutines follows the line that says why

// tail keeps the last bytes that a server wrote to stderr, or as text to stdout.
type tail struct {
	mu  sync.Mutex
	buf []byte // at most tailSize
}

// drain reads r to its end, so that the process can always write to it.
func (t *tail) drain(r io.Reader, lines *lines) {
	buf := make([]byte, 512) // small: it is kept as long as the server runs, and most servers write little
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

// write adds bytes, and drops the oldest ones beyond tailSize.
func (t *tail) write(b []byte) {
	b = b[max(0, len(b)-tailSize):]
	t.mu.Lock()
	defer t.mu.Unlock()
	if over := len(t.buf) + len(b) - tailSize; over > 0 {
		t.buf = slices.Delete(t.buf, 0, over)
	}
	t.buf = append(t.buf, b...)
}

// last returns what the output says of the end of the program, as text for a log line with about limit bytes at most.
func (t *tail) last(limit int, secrets ...string) string {
	t.mu.Lock()
	text, cut := string(t.buf), len(t.buf) == tailSize
	t.mu.Unlock()
	if cut {
		text = dropEnd(text, secrets)
	}
	return why(redact.Lines(colors.ReplaceAllString(text, ""), secrets...), limit)
}

// dropEnd removes the end of a secret from the beginning of a text whose earlier part is missing.
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
