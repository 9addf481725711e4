package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/rs/zerolog"
)

// maxLines bounds the log lines that wait for a slow writer.
const maxLines = 4096

// Logger is a logger in front of another logger. It never waits for the writer, the
// hooks or the sampler of that logger, and it sums up floods of equal lines. The zero value
// is not usable.
type Logger struct {
	zerolog.Logger
	behind zerolog.Logger
	lines  *Relay[line]
	floods map[kind]*flood // only the goroutine of lines uses it
}

// line is one line of a log, as zerolog has encoded it. If do is set, it is no line but
// something to do between the lines.
type line struct {
	level zerolog.Level
	text  []byte
	at    time.Time
	do    func()
}

// NewLogger returns a Logger in front of another one, which gets each line with its
// level.
func NewLogger(behind zerolog.Logger) *Logger {
	if all := behind.Sample(nil); all.WithLevel(zerolog.PanicLevel) == nil { // the zero value, or a disabled logger
		return &Logger{Logger: zerolog.Nop(), lines: New(0, func(line) {}, nil, nil)}
	}
	l := &Logger{behind: behind, floods: map[kind]*flood{}}
	l.lines = New(maxLines, l.take, func(n uint64) {
		behind.Warn().Uint64("lines", n).Msg("log lines were dropped, because the writer was too slow")
	}, nil)
	l.Logger = zerolog.New(l).Level(behind.GetLevel())
	return l
}

// Write queues a line without a level.
func (l *Logger) Write(p []byte) (int, error) { return l.WriteLevel(zerolog.NoLevel, p) }

// WriteLevel queues a line. Lines below Info take at most half of the queue, so that they do
// not displace others.
func (l *Logger) WriteLevel(level zerolog.Level, p []byte) (int, error) {
	detail, most := level < zerolog.InfoLevel, maxLines
	if detail {
		most /= 2
	}
	l.lines.PutOf(detail, most, line{level: level, text: bytes.Clone(p), at: time.Now()})
	return len(p), nil
}

// Dropped returns how many lines have been dropped.
func (l *Logger) Dropped() uint64 { return l.lines.Dropped() }

// Flush sums up all floods, waits until all lines are written or ctx ends, and reports
// whether all were written.
func (l *Logger) Flush(ctx context.Context) bool {
	if !l.lines.Flush(ctx) {
		return false
	}
	if l.floods == nil { // nothing is logged
		return true
	}
	l.lines.Put(line{do: l.sumUpAll})
	return l.lines.Flush(ctx)
}

// take writes a line to the logger behind, unless it is one of a flood.
func (l *Logger) take(ln line) {
	if ln.do != nil {
		ln.do()
		return
	}
	d := decode(ln.text)
	if !l.passes(kind{ln.level, d.text, d.server}, ln.at) {
		return
	}
	e := l.behind.WithLevel(ln.level)
	if e == nil {
		return
	}
	for _, f := range d.fields {
		e.RawJSON(f.name, f.value)
	}
	e.Msg(d.text)
}

// decoded is a line with its fields, apart from the level.
type decoded struct {
	text, server string
	fields       []field
}

type field struct {
	name  string
	value json.RawMessage
}

// decode returns the parts of a line that zerolog has encoded.
func decode(text []byte) (d decoded) {
	fields := json.NewDecoder(bytes.NewReader(text))
	fields.Token() //nolint:errcheck // the opening brace
	for fields.More() {
		token, err := fields.Token()
		var f field
		if err != nil || fields.Decode(&f.value) != nil {
			break
		}
		switch f.name = token.(string); f.name {
		case zerolog.LevelFieldName:
			continue
		case zerolog.MessageFieldName:
			json.Unmarshal(f.value, &d.text) //nolint:errcheck // zerolog has made it
			continue
		case "server":
			json.Unmarshal(f.value, &d.server) //nolint:errcheck // what is no text makes no difference
		}
		d.fields = append(d.fields, f)
	}
	return d
}
