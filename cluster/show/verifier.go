package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// verifier records calls, replies and runs of tools, and checks at the end that the guarantees
// hold. Its methods may be called from any goroutine.
type verifier struct {
	failed func(scope string, f *messages.Failure) // called for each failure

	mu        sync.Mutex
	sentCalls int
	calls     map[string]*call    // those of the last minute, by id
	sessions  map[string]*session // by scope
	moves     int                 // sessions that were answered by another member than before
	waits     []time.Duration     // of the last act: from the first call of a moved session to its first result

	unanswered, repeated []string // violations
	reset                []string // scopes whose state was lost

	answered, replayed int
	again              int // calls that ran more than once, known after check
	failures           map[messages.Code]int
	slowest            time.Duration
}

// call is a call of a tool.
type call struct {
	op      *messages.CallTool
	sent    time.Time
	replied time.Time // the last reply
	replies int
	runs    int
	ok      bool
}

func newVerifier(failed func(scope string, f *messages.Failure)) *verifier {
	return &verifier{failed: failed, calls: map[string]*call{}, sessions: map[string]*session{}, failures: map[messages.Code]int{}}
}

// sent records a call.
func (v *verifier) sent(op *messages.CallTool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sentCalls++
	v.calls[op.ID] = &call{op: op, sent: time.Now()}
	v.called(op.Key.Scope)
}

// executed records that a server runs a call.
func (v *verifier) executed(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c := v.calls[id]; c != nil {
		c.runs++
	}
}

// replied records the reply to a call.
func (v *verifier) replied(reply messages.Reply) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.calls[reply.RequestID()]
	if c == nil {
		v.unanswered = append(v.unanswered, "a reply to an unknown call")
		return
	}
	c.replies++
	c.replied = time.Now()
	v.answered++
	v.slowest = max(v.slowest, c.replied.Sub(c.sent))
	switch r := reply.(type) {
	case *messages.ToolResult:
		c.ok = true
		if r.Replayed {
			v.replayed++
		}
		v.locate(c.op, r)
	case *messages.Failure:
		v.failures[r.Code]++
		v.failed(c.op.Key.Scope, r)
	}
}

// keptFor is how long a call is remembered after its reply.
const keptFor = time.Minute

// forget checks the calls that were answered some time ago, and forgets them. A later reply to
// one of them is a reply to an unknown call.
func (v *verifier) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, c := range v.calls {
		if c.replies > 0 && time.Since(c.replied) > keptFor {
			v.checkCall(id, c)
			delete(v.calls, id)
		}
	}
}

// checkCall records the violations of a call. The caller holds mu.
func (v *verifier) checkCall(id string, c *call) {
	if c.replies != 1 {
		v.unanswered = append(v.unanswered, fmt.Sprintf("call %s got %d replies", id, c.replies))
	}
	maxRuns := 1
	if c.op.Params.Name == "total" {
		maxRuns = 2
	}
	if c.runs > 1 {
		v.again++
	}
	if c.runs > maxRuns || c.ok && c.runs == 0 {
		v.repeated = append(v.repeated, fmt.Sprintf("call %s ran %d times", id, c.runs))
	}
}

// check returns the violations of the claims. It is called once, at the end.
func (v *verifier) check() (unanswered, repeated []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, c := range v.calls {
		v.checkCall(id, c)
	}
	return v.unanswered, v.repeated
}

// failureCount returns how many calls have failed.
func (v *verifier) failureCount() (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, count := range v.failures {
		n += count
	}
	return n
}
