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
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// ResultType is the resultType of a result that asks for input.
const ResultType = "input_required"

const (
	// maxRounds bounds how often a server may ask for input before it answers.
	maxRounds = 10
	// maxEmpty bounds how often a server may only ask to repeat the request.
	maxEmpty = 3
)

// Question is a question of a result.
type Question struct {
	Params mcp.InputRequest
	Raw    json.RawMessage // the parameters as they came, or nil
}

// Asked is a result that asks for input. Immutable.
type Asked struct {
	messages.Receipt
	Questions map[string]Question // by their keys
	State     json.RawMessage     // to be sent back as it came, or nil
	Raw       json.RawMessage     // that Decode decodes; read-only
}

// Decode decodes a result that asks for input.
func Decode(raw []byte) (*Asked, error) {
	var wire struct {
		Requests map[string]struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		} `json:"inputRequests"`
		State json.RawMessage `json:"requestState"`
	}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return nil, err
	}
	a := &Asked{Questions: map[string]Question{}, Raw: bytes.Clone(raw)}
	if len(wire.State) > 0 && string(wire.State) != "null" {
		a.State = wire.State
	}
	for key, one := range wire.Requests {
		params := one.Params
		if len(params) == 0 {
			params = json.RawMessage("{}") // roots/list may have none
		}
		text, err := json.Marshal(map[string]any{key: map[string]any{"method": one.Method, "params": params}})
		if err != nil {
			return nil, err
		}
		var typed mcp.InputRequestMap
		if err := json.Unmarshal(text, &typed); err != nil {
			return nil, fmt.Errorf("inputRequests: %w", err)
		}
		for _, its := range typed {
			a.Questions[key] = Question{its, one.Params}
		}
	}
	if len(a.Questions) == 0 && a.State == nil {
		return nil, errors.New("it has neither inputRequests nor a requestState")
	}
	return a, nil
}

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

// Next is a later round of an operation.
type Next struct {
	messages.Operation
	State   json.RawMessage // or nil
	Answers map[string]json.RawMessage
}

// Sent returns the operation that is sent: that of the first round, with the answers and the state.
func (n *Next) Sent() messages.Operation {
	h := *n.Head()
	h.Extra = maps.Clone(h.Extra)
	if h.Extra == nil {
		h.Extra = map[string]json.RawMessage{}
	}
	delete(h.Extra, "inputResponses")
	delete(h.Extra, "requestState")
	if len(n.Answers) > 0 {
		h.Extra["inputResponses"], _ = json.Marshal(n.Answers) // they are JSON
	}
	if n.State != nil {
		h.Extra["requestState"] = n.State
	}
	return messages.With(n.Operation, h)
}

// IsLater reports whether an operation is a later round: one that [Next.Sent] has returned, or that a caller sends who follows the rounds
// itself.
func IsLater(op messages.Operation) bool {
	extra := op.Head().Extra
	return extra["inputResponses"] != nil || extra["requestState"] != nil
}

// Questions asks the questions of a round. Nothing is sent to the server, and the end of its connection does not end them. The result
// is [Answers].
type Questions struct {
	messages.Header
	Call  messages.Operation // whose handler is asked
	Asked *Asked
}

// Method returns the name of the result that has the questions.
func (*Questions) Method() string { return ResultType }

// Answers are the answers to all questions of a round, by their keys.
type Answers struct {
	messages.Receipt
	All map[string]json.RawMessage
}
