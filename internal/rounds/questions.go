package rounds

import (
	"encoding/json"

	"github.com/mcpactor/mcpactor/messages"
)

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
