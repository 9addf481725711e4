package batch

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

// maxEvents bounds the events in the queue. Further events are dropped and counted.
const maxEvents = 1000

// eventLine is the line of output for one event.
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
	Delay      string          `json:"delay,omitempty"`
	Elapsed    string          `json:"elapsed,omitempty"`
	Lifetime   string          `json:"lifetime,omitempty"`
	Cause      string          `json:"cause,omitempty"`
	RetryAt    time.Time       `json:"retryAt,omitzero"`
	Reason     string          `json:"reason,omitempty"`
	URI        string          `json:"uri,omitempty"`
	Level      string          `json:"level,omitempty"`
	Logger     string          `json:"logger,omitempty"`
	Data       any             `json:"data,omitempty"`
	Method     string          `json:"method,omitempty"`
	Target     string          `json:"target,omitempty"`
	Params     any             `json:"params,omitempty"`
	Progress   *float64        `json:"progress,omitempty"`
	Total      float64         `json:"total,omitempty"`
	Message    string          `json:"message,omitempty"`
	Tool       string          `json:"tool,omitempty"`
	Change     toolset.Change  `json:"change,omitempty"`
	Fields     []string        `json:"fields,omitempty"`
	Owner      string          `json:"owner,omitempty"`
	Scopes     []string        `json:"scopes,omitempty"`
	Cancelled  *int            `json:"cancelled,omitempty"`
	Count      int             `json:"count,omitempty"`
}

// lineOf returns the line of an event.
func lineOf(event messages.Event) *eventLine {
	stamp := event.GetStamp()
	l := &eventLine{
		Event: event.EventName(), Time: stamp.Time,
		Server: stamp.Key.Server, Scope: stamp.Key.Scope, Generation: stamp.Generation,
	}
	switch e := event.(type) {
	case *messages.SessionOpened:
		l.Attached, l.Protocol, l.Elapsed = &e.Attached, e.Protocol, e.Elapsed.String()
	case *messages.SessionExpired:
		l.Cause = e.Cause
	case *messages.SessionLost:
		l.Cause = e.Cause
	case *messages.SessionRestarting:
		l.Attempt, l.Delay, l.Cause = e.Attempt, e.Delay.String(), e.Cause
	case *messages.SessionRestarted:
		l.Attached, l.Protocol, l.Elapsed, l.Lifetime = &e.Attached, e.Protocol, e.Elapsed.String(), e.Lifetime.String()
	case *messages.SessionGaveUp:
		l.Cause, l.RetryAt = e.Cause, e.RetryAt
	case *messages.SessionEvicted:
		l.Reason = string(e.Reason)
	case *messages.SessionClosed:
		l.Cause, l.Lifetime = e.Cause, e.Lifetime.String()
	case *messages.CallReplayed:
		l.Method, l.Target, l.Attempt = e.Method, e.Target, e.Attempt
	case *messages.ResourceUpdated:
		l.URI = e.URI
	case *messages.ServerLog:
		l.Level, l.Logger, l.Data = e.Level, e.Logger, e.Data
	case *messages.CustomNotification:
		l.Method = e.Method
		json.Unmarshal(e.Params, &l.Params) //nolint:errcheck // it was JSON, or is nothing
	case *messages.Progress:
		l.Progress, l.Total, l.Message = &e.Progress, e.Total, e.Message
	case *toolset.DefinitionChanged:
		l.Tool, l.Change, l.Fields = e.Tool, e.Change, e.Fields
	case *messages.OwnerTerminated:
		l.Owner, l.Scopes, l.Cancelled = e.Owner, e.Scopes, &e.Cancelled
	case *messages.ToolsChanged, *messages.PromptsChanged, *messages.ResourcesChanged:
	}
	return l
}

// eventQueue is a queue of events that are not printed yet. Its methods may be called from
// any goroutine, and do not block.
type eventQueue struct {
	ready chan struct{} // receives a value when the queue is not empty

	mu      sync.Mutex
	waiting []*eventLine
	dropped int // the number of events dropped after those in waiting
}

func newEventQueue() *eventQueue { return &eventQueue{ready: make(chan struct{}, 1)} }

// publish adds an event.
func (q *eventQueue) publish(event messages.Event) { q.add(lineOf(event)) }

// progress returns a function that adds the progress of a request.
func (q *eventQueue) progress(id json.RawMessage) func(*messages.Progress) {
	return func(p *messages.Progress) {
		l := lineOf(p)
		l.ID = id
		q.add(l)
	}
}

func (q *eventQueue) add(l *eventLine) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= maxEvents {
		q.dropped++
		return
	}
	q.waiting = append(q.waiting, l)
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take empties the queue. If events were dropped, the last line has their number.
func (q *eventQueue) take() []*eventLine {
	q.mu.Lock()
	defer q.mu.Unlock()
	lines := q.waiting
	if q.dropped > 0 {
		lines = append(lines, &eventLine{Event: "dropped", Count: q.dropped})
	}
	q.waiting, q.dropped = nil, 0
	return lines
}

func (q *eventQueue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) == 0
}
