package exec

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// maxEvents bounds the events in the queue. Further events are dropped and counted.
const maxEvents = 1000

// eventLine is the line of output for one event. Its names are those of the JSON of events.
type eventLine struct {
	Event       string          `json:"event"`
	ID          json.RawMessage `json:"id,omitempty"`
	Server      string          `json:"server,omitempty"`
	Scope       string          `json:"scope,omitempty"`
	Generation  uint64          `json:"generation,omitempty"`
	Time        time.Time       `json:"time,omitzero"`
	Attached    *bool           `json:"attached,omitempty"`
	Protocol    string          `json:"protocol,omitempty"`
	Attempt     int             `json:"attempt,omitempty"`
	Delay       string          `json:"delay,omitempty"`
	Elapsed     string          `json:"elapsed,omitempty"`
	Lifetime    string          `json:"lifetime,omitempty"`
	Cause       string          `json:"cause,omitempty"`
	RetryAt     time.Time       `json:"retryAt,omitzero"`
	Reason      string          `json:"reason,omitempty"`
	Mint        string          `json:"mint,omitempty"`
	Gone        bool            `json:"gone,omitempty"`
	URI         string          `json:"uri,omitempty"`
	Level       string          `json:"level,omitempty"`
	Logger      string          `json:"logger,omitempty"`
	Data        any             `json:"data,omitempty"`
	Operation   any             `json:"operation,omitempty"`
	Status      string          `json:"status,omitempty"`
	Elicitation string          `json:"elicitationId,omitempty"`
	Meta        mcp.Meta        `json:"meta,omitempty"`
	Method      string          `json:"method,omitempty"`
	Target      string          `json:"target,omitempty"`
	Params      any             `json:"params,omitempty"`
	Progress    *float64        `json:"progress,omitempty"`
	Total       float64         `json:"total,omitempty"`
	Message     string          `json:"message,omitempty"`
	Tool        string          `json:"tool,omitempty"`
	Change      string          `json:"change,omitempty"`
	Fields      []string        `json:"fields,omitempty"`
	Owner       string          `json:"owner,omitempty"`
	Scopes      []string        `json:"scopes,omitempty"`
	Cancelled   *int            `json:"cancelled,omitempty"`
	Count       int             `json:"count,omitempty"`
}

// lineOf returns the line of an event: what the line has of the event's JSON.
func lineOf(event messages.Event) *eventLine {
	stamp, l := event.GetStamp(), &eventLine{}
	if log, ok := event.(*messages.ServerLog); ok { // its data may be no JSON
		l.Data = log.Data
		event = &messages.ServerLog{Stamp: stamp, Level: log.Level, Logger: log.Logger, Operation: log.Operation, Meta: log.Meta}
	}
	if data, err := json.Marshal(event); err == nil {
		json.Unmarshal(data, l) //nolint:errcheck // it was JSON
	}
	l.Event, l.ID, l.Server, l.Scope = event.EventName(), nil, stamp.Key.Server, stamp.Key.Scope
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
