// Package rounds has the calls whose server waits for an answer while their client does not: a client of protocol 2026-07-28 gets a
// question as the result of one request, and answers it with another one, a round (SEP-2322). A server of an earlier protocol asks in
// the middle of one call.
//
//	running ──question──▶ asked ──answers to all──▶ running
//	   │                    │ └──to some──▶ asked, in the next round
//	   └──────result────────┴──▶ over
package rounds

import (
	"encoding/json"
	"errors"
	"maps"
	"strconv"
)

// Question is what a server asks: a method and its parameters, as an input request has them.
type Question struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// Reply is what a round is answered with: the questions that are open, by their keys, or else the end of the call.
type Reply[Result any] struct {
	Questions map[string]Question
	Result    Result
}

// Call decides what the rounds of one call are answered with. It does nothing itself. The zero Call is one whose first round runs.
type Call[Result any] struct {
	asked   int                 // counts the questions
	open    map[string]Question // without an answer
	replies []Reply[Result]     // with questions, of the rounds so far
	isIdle  bool                // the last round has its reply, and no other one has come
	isOver  bool
	result  Result
}

// Ask notes a question, which is part of the reply to the round that runs, or else to the next one. It returns its key.
func (c *Call[Result]) Ask(q Question) (key string) {
	c.asked++
	key = "q" + strconv.Itoa(c.asked)
	if c.open == nil {
		c.open = map[string]Question{}
	}
	c.open[key] = q
	c.reply()
	return key
}

// Withdraw notes that nobody waits for the answer to a question any more.
func (c *Call[Result]) Withdraw(key string) { delete(c.open, key) }

// IsAsking reports whether a question is open.
func (c *Call[Result]) IsAsking() bool { return len(c.open) > 0 }

// IsOver reports whether the call has ended.
func (c *Call[Result]) IsOver() bool { return c.isOver }

// ErrRound is the error for a round that the call has not asked for.
var ErrRound = errors.New("the call has not asked for this")

// Answer takes the round that follows the reply with a number, and returns the answers to questions that are open. A round that has
// come before is the same round: it has no answers, and the same reply. The reply is that with the next number.
func (c *Call[Result]) Answer(number int, responses map[string]json.RawMessage) (answers map[string]json.RawMessage, err error) {
	if number < 0 || number >= len(c.replies) {
		return nil, ErrRound
	}
	if number < len(c.replies)-1 || !c.isIdle || c.isOver {
		return nil, nil
	}
	answers = maps.Clone(responses)
	maps.DeleteFunc(answers, func(key string, _ json.RawMessage) bool { _, isOpen := c.open[key]; return !isOpen })
	for key := range answers {
		delete(c.open, key)
	}
	c.isIdle = false
	if c.IsAsking() { // without some answers, or with a question that came meanwhile
		c.reply()
	}
	return answers, nil
}

// Finish notes the end of the call. It is the reply to the round that runs, or to the next one.
func (c *Call[Result]) Finish(result Result) { c.isOver, c.result, c.open = true, result, nil }

// Reply returns the reply with a number, counted from 0, if there is one.
func (c *Call[Result]) Reply(number int) (reply Reply[Result], ok bool) {
	if number < len(c.replies) {
		return c.replies[number], true
	}
	return Reply[Result]{Result: c.result}, c.isOver
}

// reply answers the round that runs with the questions that are open.
func (c *Call[Result]) reply() {
	if !c.isIdle && !c.isOver {
		c.replies = append(c.replies, Reply[Result]{Questions: maps.Clone(c.open)})
		c.isIdle = true
	}
}
