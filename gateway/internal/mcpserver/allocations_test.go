//go:build !race

package mcpserver

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// What each call through a gateway pays for its messages. A figure that has become smaller is to be written down here.
func TestMessagesTakeFewAllocations(t *testing.T) {
	line := []byte(`{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`)
	require.EqualValues(t, 9, testing.AllocsPerRun(1000, func() {
		messages, _ := decode(line)
		messages[0].Meta()
	}))
	raw := json.RawMessage(`{"content":[{"type":"text","text":"hello"}]}`)
	require.EqualValues(t, 1, testing.AllocsPerRun(1000, func() {
		(&Message{ID: line[24:26], Result: raw}).encode()
	}))
}
