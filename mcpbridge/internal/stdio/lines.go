package stdio

import (
	"bytes"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/stderr"
)

// lines passes on the output of a server line by line. It holds at most one line.
type lines struct {
	to      *stderr.Writer // or nil
	config  *mcpbridge.Server
	secrets []string // of config; nil before the first line

	buf []byte // the incomplete line, at most maxLine bytes of it
}

// maxLine is how much of a line is kept before secrets are blacked out.
const maxLine = 4<<10 - len("…")

// write adds output.
func (l *lines) write(b []byte) {
	if l.to == nil {
		return
	}
	for {
		line, rest, ended := bytes.Cut(b, []byte("\n"))
		l.buf = append(l.buf, line[:min(len(line), maxLine+1-len(l.buf))]...)
		if !ended {
			return
		}
		l.end()
		b = rest
	}
}

// end passes on the line in buf, unless it is blank.
func (l *lines) end() {
	text := l.buf
	l.buf = l.buf[:0]
	if len(bytes.TrimSpace(text)) == 0 {
		return
	}
	if l.secrets == nil {
		l.secrets = append([]string{}, redact.OfServer(l.config)...)
	}
	kept, long, secrets := string(text[:min(len(text), maxLine)]), len(text) > maxLine, l.secrets
	l.to.Put(func() string { // may be called in another goroutine
		line := redact.Line(kept, secrets...)
		if long || len(line) > maxLine { // malformed UTF-8 becomes longer
			line = cut(line) + "…"
		}
		return line
	})
}

// cut returns the beginning of a text.
func cut(text string) string {
	return string(bytes.ToValidUTF8([]byte(text[:min(len(text), maxLine)]), nil))
}
