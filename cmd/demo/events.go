package main

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// maxEvents bounds the events that wait to be written. Past that, they are dropped,
// and counted.
const maxEvents = 1000

// eventLine is a line of output that answers nothing.
type eventLine struct {
	Event      string          `json:"event"`
	ID         json.RawMessage `json:"id,omitempty"`
	Server     string          `json:"server,omitempty"`
	Scope      string          `json:"scope,omitempty"`
	Generation uint64          `json:"generation,omitempty"`
	Time       time.Time       `json:"time,omitzero"`
	Attached   *bool           `json:"attached,omitempty"`
	Protocol   string          `json:"protocol,omitempty"`
	Attempt    int             `json:"attempt,omitempty"`
	DelayMs    *int64          `json:"delayMs,omitempty"`
	ElapsedMs  *int64          `json:"elapsedMs,omitempty"`
	Cause      string          `json:"cause,omitempty"`
	RetryAt    time.Time       `json:"retryAt,omitzero"`
	Reason     string          `json:"reason,omitempty"`
	URI        string          `json:"uri,omitempty"`
	Level      string          `json:"level,omitempty"`
	Logger     string          `json:"logger,omitempty"`
	Data       any             `json:"data,omitempty"`
	Progress   *float64        `json:"progress,omitempty"`
	Total      float64         `json:"total,omitempty"`
	Message    string          `json:"message,omitempty"`
	Count      int             `json:"count,omitempty"`
}

// lineOf makes the line of an event: its name is that of the type.
func lineOf(event messages.Event) *eventLine {
	stamp := event.GetStamp()
	l := &eventLine{
		Event: snake(reflect.TypeOf(event).Elem().Name()), Time: stamp.Time,
		Server: stamp.Key.Server, Scope: stamp.Key.Scope, Generation: stamp.Generation,
	}
	millis := func(d time.Duration) *int64 { return new(d.Milliseconds()) }
	switch e := event.(type) {
	case *messages.SessionOpened:
		l.Attached, l.Protocol, l.ElapsedMs = &e.Attached, e.Protocol, millis(e.Elapsed)
	case *messages.SessionExpired:
		l.Cause = e.Cause
	case *messages.SessionLost:
		l.Cause = e.Cause
	case *messages.SessionRestarting:
		l.Attempt, l.DelayMs, l.Cause = e.Attempt, millis(e.Delay), e.Cause
	case *messages.SessionRestarted:
		l.Attached, l.Protocol, l.ElapsedMs = &e.Attached, e.Protocol, millis(e.Elapsed)
	case *messages.SessionGaveUp:
		l.Cause, l.RetryAt = e.Cause, e.RetryAt
	case *messages.SessionEvicted:
		l.Reason = string(e.Reason)
	case *messages.SessionClosed:
		l.Cause = e.Cause
	case *messages.ResourceUpdated:
		l.URI = e.URI
	case *messages.ServerLog:
		l.Level, l.Logger, l.Data = e.Level, e.Logger, e.Data
	case *messages.Progress:
		l.Progress, l.Total, l.Message = &e.Progress, e.Total, e.Message
	case *messages.ToolsChanged, *messages.PromptsChanged, *messages.ResourcesChanged:
	}
	return l
}

var hump = regexp.MustCompile(`[a-z][A-Z]`)

// snake turns SessionOpened into session_opened.
func snake(name string) string {
	return strings.ToLower(hump.ReplaceAllStringFunc(name, func(at string) string { return at[:1] + "_" + at[1:] }))
}

// events are the events that wait to be written. Its methods may be called from any
// goroutine, and block nobody.
type events struct {
	ready chan struct{} // has one when there are some

	mu      sync.Mutex
	waiting []*eventLine
	dropped int // after those that wait
}

func newEvents() *events { return &events{ready: make(chan struct{}, 1)} }

// publish takes an event of the EventStream in; others than ours are ignored.
func (e *events) publish(event any) {
	if event, ok := event.(messages.Event); ok {
		e.add(lineOf(event))
	}
}

// progress returns a function that takes the progress of a request in.
func (e *events) progress(id json.RawMessage) func(*messages.Progress) {
	return func(p *messages.Progress) {
		l := lineOf(p)
		l.ID = id
		e.add(l)
	}
}

func (e *events) add(l *eventLine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.waiting) >= maxEvents {
		e.dropped++
		return
	}
	e.waiting = append(e.waiting, l)
	select {
	case e.ready <- struct{}{}:
	default:
	}
}

// take returns all that wait. Where some were dropped, a line says how many.
func (e *events) take() []*eventLine {
	e.mu.Lock()
	defer e.mu.Unlock()
	lines := e.waiting
	if e.dropped > 0 {
		lines = append(lines, &eventLine{Event: "dropped", Count: e.dropped})
	}
	e.waiting, e.dropped = nil, 0
	return lines
}

func (e *events) empty() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.waiting) == 0
}
