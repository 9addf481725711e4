package tests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

// logCheck is the writer of the log of a scenario. It checks each line, and that each event
// has one line.
type logCheck struct {
	mu    sync.Mutex
	errs  []error
	count map[string]int // of lines, by what lineOf returns for their events
	lost  bool           // lines for debugging were dropped
}

func newLogCheck() *logCheck { return &logCheck{count: map[string]int{}} }

// logger returns a logger that writes to the check.
func (l *logCheck) logger() zerolog.Logger { return zerolog.New(l).Level(zerolog.DebugLevel) }

// isSilent reports whether a logger is the zero value.
func isSilent(l zerolog.Logger) bool { return reflect.DeepEqual(l, zerolog.Logger{}) }

// logFields are the fields of lines, and whether their values are durations.
var logFields = map[string]bool{
	"level": false, "message": false, "server": false, "scope": false, "generation": false, "op": false, "target": false, "code": false,
	"attempt": false, "delay": true, "elapsed": true, "lifetime": true, "err": false, "error": false, "attached": false, "protocol": false,
	"reason": false, "owner": false, "scopes": false, "cancelled": false, "repeated": false, "lines": false, "events": false,
	"type": false, "notification": false, "stack": false, "servers": false, "cap": false, "left": false, "event": false, "lib": false, "tool": false, "status": false,
	"call": false,
}

var (
	message  = regexp.MustCompile(`^[a-z][^A-Z\n]*[a-zA-Z]$`)
	duration = regexp.MustCompile(`^[\d.]+(ns|µs|ms|s|m|h)([\dhms.]*)$`)
)

// Write checks a line.
func (l *logCheck) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wrong := func(format string, args ...any) {
		l.errs = append(l.errs, fmt.Errorf(format+" in the line %s", append(args, line)...))
	}
	fields := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.Token() // the brace
	for decoder.More() {
		name, err := decoder.Token()
		var value any
		if err == nil {
			err = decoder.Decode(&value)
		}
		if err != nil {
			wrong("%v", err)
			return len(line), nil
		}
		field := name.(string)
		if _, twice := fields[field]; twice {
			wrong("field %s is twice", field)
		}
		fields[field] = value
		isDuration, known := logFields[field]
		switch text, _ := value.(string); {
		case !known:
			wrong("field %s is not one of ours", field)
		case isDuration && !duration.MatchString(text):
			wrong("field %s has no unit", field)
		case value == nil, value == "", value == false, value == 0.0:
			wrong("field %s is empty", field)
		}
	}
	text, _ := fields["message"].(string)
	if fields["lib"] == nil && !message.MatchString(text) && !strings.Contains(text, "Tenant") {
		wrong("message %q is not as it should be", text)
	}
	l.lost = l.lost || strings.HasPrefix(text, "log lines were dropped")
	n := 1
	if repeated, is := fields["repeated"].(float64); is {
		n = int(repeated)
	}
	server, _ := fields["server"].(string)
	l.count[strings.TrimSpace(text+" "+server)] += n
	return len(line), nil
}

// violations returns what is wrong with the log of a scenario with these events.
func (l *logCheck) violations(events []messages.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	errs := slices.Clone(l.errs)
	want := map[string]int{}
	for _, e := range events {
		if line := lineOf(e); line != "" {
			want[strings.TrimSpace(line+" "+e.GetStamp().Key.Server)]++
		}
	}
	for line, n := range want {
		mayLack := l.lost && slices.ContainsFunc([]string{"call replayed", "handle minted", "handle released"}, func(debug string) bool { return strings.HasPrefix(line, debug) })
		if got := l.count[line]; got != n && !mayLack {
			errs = append(errs, fmt.Errorf("%d lines for %d events: %s", got, n, line))
		}
	}
	return errors.Join(errs...)
}

// lineOf returns the message of the line of an event, or nothing if it is a notification.
func lineOf(event messages.Event) string {
	switch event.(type) {
	case *messages.SessionOpened:
		return "session opened"
	case *messages.SessionExpired:
		return "session expired"
	case *messages.SessionLost:
		return "session lost"
	case *messages.SessionRestarting:
		return "session restarting"
	case *messages.SessionRestarted:
		return "session restarted"
	case *messages.SessionGaveUp:
		return "session given up"
	case *messages.SessionEvicted:
		return "session evicted"
	case *messages.SessionClosed:
		return "session closed"
	case *messages.HandleMinted:
		return "handle minted"
	case *messages.HandleReleased:
		return "handle released"
	case *messages.HandleLost:
		return "handle lost"
	case *messages.HandleLeft:
		return "handle left"
	case *messages.CallReplayed:
		return "call replayed"
	case *messages.TaskChanged:
		return "task changed"
	case *messages.OwnerTerminated:
		return "owner terminated"
	case messages.Notification:
		return ""
	}
	return fmt.Sprintf("%T", event)
}

func TestLogCheckFindsWhatIsWrong(t *testing.T) {
	event := &messages.SessionLost{Stamp: messages.Stamp{Key: messages.Key{Server: "s", Scope: "a"}, Time: time.Now()}}
	for want, lines := range map[string]string{
		"field scope is empty":             `{"level":"warn","server":"s","scope":"","message":"session lost"}`,
		"field generation is empty":        `{"level":"warn","server":"s","generation":0,"message":"session lost"}`,
		"field elapsed has no unit":        `{"level":"warn","server":"s","elapsed":12,"message":"session lost"}`,
		"field scop is not one of ours":    `{"level":"warn","server":"s","scop":"a","message":"session lost"}`,
		"field server is twice":            `{"level":"warn","server":"s","server":"s","message":"session lost"}`,
		"message \"Lost it.\" is not":      `{"level":"warn","server":"s","message":"Lost it."}`,
		"0 lines for 1 events":             `{"level":"warn","server":"s","message":"session expired"}`,
		"2 lines for 1 events":             `{"level":"warn","server":"s","repeated":2,"message":"session lost"}`,
		"unexpected EOF in the line {\"le": `{"level":"wa`,
	} {
		l := newLogCheck()
		io.WriteString(l, lines)
		require.ErrorContains(t, l.violations([]messages.Event{event}), want)
	}
	l := newLogCheck()
	io.WriteString(l, `{"level":"warn","server":"s","scope":"a","generation":1,"elapsed":"1.5s","message":"session lost"}`)
	require.NoError(t, l.violations([]messages.Event{event}))
}
