package stdio

import (
	"bytes"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
)

// lines passes on what a server writes to stderr, line by line, while somebody follows. It
// holds at most one line.
type lines struct {
	to      *mcpbridge.Stderr
	config  *mcpbridge.Server
	secrets []string // of config; nil before the first line

	buf     []byte // of the line that has begun, at most maxLine
	partial bool   // the line had begun when nobody followed: the end of a secret may stand in it
}

// maxLine is how much of a line is kept before secrets are blacked out.
const maxLine = 4<<10 - len("…")

// write takes the next bytes.
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

// end passes on the line that has begun, if there is anything visible in it.
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
	l.to.Put(func() string { // perhaps in another goroutine
		line := redact.Line(kept, secrets...)
		if long || len(line) > maxLine { // what is not UTF-8 has become longer
			line = cut(line) + "…"
		}
		return line
	})
}

// cut returns the beginning of a text.
func cut(text string) string {
	return string(bytes.ToValidUTF8([]byte(text[:min(len(text), maxLine)]), nil))
}
