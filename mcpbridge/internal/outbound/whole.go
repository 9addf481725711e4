package outbound

import (
	"bytes"
	"encoding/json"
	"io"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
)

// mayBeWhole reports whether data may be a JSON object or array.
func mayBeWhole(data []byte) bool {
	data = data[max(0, len(data)-4):] // a few blanks may follow
	return bytes.ContainsAny(data, "}]")
}

// isWhole reports whether data is a JSON value.
func isWhole(data []byte) bool { return json.Valid(rpc.Trimmed(data)) }

// readOn reads more of a body into the capacity of data. If data may be a whole value, and is one, and nothing comes for a
// [Pause], readOn closes the body, which ends the read.
func readOn(body io.ReadCloser, data []byte, mayBeWhole bool) (int, error) {
	into := data[len(data):cap(data)]
	if !mayBeWhole { // most bodies come whole, with their end
		return body.Read(into)
	}
	asked := make(chan struct{})
	timer := time.AfterFunc(Pause, func() {
		defer close(asked)
		if isWhole(data) {
			body.Close()
		}
	})
	n, err := body.Read(into)
	if !timer.Stop() {
		<-asked
	}
	return n, err
}
