package results

import (
	"bytes"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Misunderstood is the error for a result that its method or its protocol does not have. The request
// has run, or waits for more: nobody knows.
type Misunderstood struct {
	// What is the result in words. It may quote the server.
	What string
}

// Error returns the text.
func (m *Misunderstood) Error() string { return m.What }

// asking are the methods whose results may ask for input, from protocol 2026-07-28 on.
var asking = map[string]bool{"prompts/get": true, "resources/read": true, "tools/call": true}

// Check returns an error, a [Misunderstood], for the result of a request with this method that is
// neither complete nor asks for input. isModern is true for protocols after 2025-11-25: before,
// results have no type, and none asks for input. Decode takes such results for complete, as the SDK does.
func Check(method string, raw []byte, isModern bool) error {
	if string(bytes.TrimSpace(raw)) == "null" {
		return &Misunderstood{"the result is null"}
	}
	if bytes.Count(raw, []byte("resultType")) == bytes.Count(raw, []byte(`"resultType":"complete"`)) { // most are, or have none
		return nil
	}
	resultType, err := typeOf(raw)
	if err != nil {
		return nil // Decode says so, too
	}
	switch resultType {
	case "", "complete":
		return nil
	case "input_required":
		if isModern && asking[method] {
			return nil
		}
		return &Misunderstood{"the result asks for input (resultType input_required), which its protocol or its method does not have"}
	}
	return &Misunderstood{fmt.Sprintf("the type of the result is not known (resultType %q)", resultType)}
}

// IsUnfinished reports whether a result of a request with this method, of protocol 2026-07-28, is not that of its operation yet: it
// asks for input, or is a task.
func IsUnfinished(method string, raw []byte) bool {
	return asking[method] && (IsOfType(raw, "input_required") || IsOfType(raw, "task"))
}

// Empty returns an empty result of a request with this method, which [Knows] knows.
func Empty(method string) mcp.Result {
	result, _ := decoders[method].decode([]byte("{}")) // all members may be missing
	return result
}

// IsOfType reports whether a result has this resultType.
func IsOfType(raw []byte, resultType string) bool {
	if !bytes.Contains(raw, []byte(resultType)) { // most have not
		return false
	}
	its, err := typeOf(raw)
	return err == nil && its == resultType
}

// typeOf returns the resultType of a result, or "".
func typeOf(raw []byte) (string, error) {
	var kind struct {
		ResultType string `json:"resultType"`
	}
	err := Parse(raw, &kind)
	return kind.ResultType, err
}
