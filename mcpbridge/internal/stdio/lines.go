package stdio

import (
	"bytes"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
)

// lines passes on the output of a server line by line, while somebody follows. It
// holds at most one line.
type lines struct {
	to      *mcpbridge.Stderr
	config  *mcpbridge.Server
	secrets []string // of config; nil before the first line

	buf     []byte // the incomplete line, at most maxLine bytes of it
	partial bool   // the beginning of the line was dropped: the line may begin with the end of a secret
}

// maxLine is how much of a line is kept before secrets are blacked out.
const maxLine = 4<<10 - len("…")

// write adds output.
func (l *lines) write(b []byte) {
	if !l.to.Followed() {
		if len(b) > 0 {
			l.buf, l.partial = nil, b[len(b)-1] != '\n'
		}
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

// end passes on the line in buf, unless it is blank or partial.
func (l *lines) end() {
	text := l.buf
	skip := l.partial || len(bytes.TrimSpace(text)) == 0
	l.buf, l.partial = l.buf[:0], false
	if skip {
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
