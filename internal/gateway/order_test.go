package gateway

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/mcpserver"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/resume"
)

// Calls that come in one write reach a process in that order, whether it runs or has yet to start: the lists that are kept make
// the second gateway start it with the first call.
func TestCallsInOneWriteReachTheServerInOrder(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	lists := &resume.Memory{}
	for range 2 {
		file := filepath.Join(t.TempDir(), "calls")
		w := newWorld(t, lists, mcpbridge.Server{Name: "s", Command: self, Env: map[string]string{processVar: orderly, fileVar: file, "GORACE": "atexit_sleep_ms=0"}})
		defer w.stop()
		r := w.raw()
		r.open()
		var want []string
		for range 20 {
			var lines []string
			for range 20 {
				id := strconv.Itoa(len(want))
				want = append(want, id)
				lines = append(lines, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"call","arguments":{"n":`+id+`}}}`)
			}
			r.send(strings.Join(lines, "\n"))
			for range lines {
				r.await(func(m *mcpserver.Message) bool { return m.ID != nil && m.Result != nil })
			}
		}
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, want, strings.Fields(string(data)))
	}
}

// orderly is the value of processVar for a process that notes the argument n of each call, in the order in which they come.
const orderly = "orderly"

// runOrderly runs that process.
func runOrderly() {
	file, err := os.Create(os.Getenv(fileVar))
	if err != nil {
		panic(err)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		m := new(mcpserver.Message)
		json.Unmarshal(lines.Bytes(), m)
		result := `{}`
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"orderly","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"call","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			fmt.Fprintln(file, string(mcpserver.ObjectOf(mcpserver.ObjectOf(m.Params)["arguments"])["n"]))
			result = `{"content":[]}`
		}
		if m.ID != nil {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
		}
	}
	os.Exit(0)
}
