// Package rounds has the rounds of an operation whose server asks for input (SEP-2322), in protocol 2026-07-28. Such a server sends
// no requests. Instead, the result of a request has questions, a state, or both:
//
//	request ──▶ result
//	   ▲  └───▶ input_required ──▶ the questions are asked
//	   │                              │
//	   └── answers and state ◀────────┘
//
// Each round is a request of its own, with the parameters of the first one. The server has acted on the rounds before, as far as
// it wants: once a first round was answered, the operation may have run.
package rounds

import (
	"encoding/json"

	"github.com/mcpactor/mcpactor/messages"
)

const (
	// maxRounds bounds how often a server may ask for input before it answers.
	maxRounds = 10
	// maxEmpty bounds how often a server may only ask to repeat the request.
	maxEmpty = 3
)

// Rounds are the rounds of one operation so far. It is a value: its methods return the next one. The zero value is that of an
// operation whose first request was not answered.
type Rounds struct {
	count, empty int
	asked        *Asked                     // what the last round was answered
	answers      map[string]json.RawMessage // of the questions, or nil while they are open
	sent         bool                       // the next round was sent
}

// Step is what follows from the answer to a round.
type Step int

// The steps.
const (
	Ask    Step = iota // the questions, and then send the next round with the answers
	Send               // the next round: there are no questions
	GiveUp             // the server asks again and again
)

// After returns the rounds after one that was answered with questions.
func (r Rounds) After(asked *Asked) (Rounds, Step) {
	r.count++
	r.asked, r.answers, r.sent = asked, nil, false
	if len(asked.Questions) > 0 {
		if r.count == maxRounds {
			return r, GiveUp
		}
		return r, Ask
	}
	if r.empty++; r.empty == maxEmpty || r.count == maxRounds {
		return r, GiveUp
	}
	return r.Answered(nil), Send
}

// Answered returns the rounds when all questions have their answers.
func (r Rounds) Answered(answers map[string]json.RawMessage) Rounds {
	if r.answers = answers; answers == nil {
		r.answers = map[string]json.RawMessage{}
	}
	return r
}

// HaveBegun reports whether a round was answered: the operation may have run.
func (r Rounds) HaveBegun() bool { return r.asked != nil }

// Send returns the rounds when the next request is sent, and whether that is the first request of a later round. Such a request
// repeats nothing.
func (r Rounds) Send() (next Rounds, isNew bool) {
	isNew = r.HaveBegun() && !r.sent
	r.sent = true
	return r, isNew
}

// Unsent returns the rounds when the last request was certainly not sent.
func (r Rounds) Unsent() Rounds {
	r.sent = false
	return r
}

// Request returns the next request of an operation: the operation itself, or a [Next].
func (r Rounds) Request(of messages.Operation) messages.Operation {
	if !r.HaveBegun() {
		return of
	}
	return &Next{Operation: of, State: r.asked.State, Answers: r.answers}
}
