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
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/resume"
)

// Calls that come in one write reach a process in that order, whether it runs or has yet to start: the lists that are kept make
// the second gateway start it with the first call.
func TestCallsInOneWriteReachTheServerInOrder(t *testing.T) {
	lists := &resume.Memory{}
	for range 2 {
		file := filepath.Join(t.TempDir(), "calls")
		r := openOrderly(t, lists, file)
		var want []string
		for range 20 {
			var lines []string
			for range 20 {
				id := strconv.Itoa(len(want))
				want = append(want, id)
				lines = append(lines, callLine(id))
			}
			r.send(strings.Join(lines, "\n"))
			for range lines {
				r.await(func(m *mcpserver.Message) bool { return m.ID != nil && m.Result != nil })
			}
		}
		require.Equal(t, want, noted(t, file))
	}
}

// Calls keep their order also while a server takes long to start, and when the client cancels some of them meanwhile.
func TestCallsKeepTheirOrderWhileTheServerStarts(t *testing.T) {
	lists, file := &resume.Memory{}, filepath.Join(t.TempDir(), "calls")
	openOrderly(t, lists, file)
	require.NoError(t, os.WriteFile(file+startSuffix, []byte("7s"), 0o600))
	began := time.Now()
	r := openOrderly(t, lists, file)
	var lines, want []string
	for i := range 30 {
		id := strconv.Itoa(i)
		lines = append(lines, callLine(id))
		if i%3 == 1 {
			lines = append(lines, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
		} else {
			want = append(want, id)
		}
	}
	r.send(strings.Join(lines, "\n"))
	require.Less(t, time.Since(began), 5*time.Second, "the list was kept")
	for range want {
		r.await(func(m *mcpserver.Message) bool { return m.ID != nil && m.Result != nil })
	}
	require.Equal(t, want, noted(t, file))
}

// A level of log messages holds for the calls that come after it, and for none before.
func TestLogLevelReachesTheServerInOrder(t *testing.T) {
	lists, file := &resume.Memory{}, filepath.Join(t.TempDir(), "calls")
	openOrderly(t, lists, file)
	require.NoError(t, os.WriteFile(file+startSuffix, []byte("300ms"), 0o600)) // the first calls wait
	r := openOrderly(t, lists, file)
	var want []string
	for round := range 5 {
		var lines []string
		for i, level := range []string{"debug", "info", "error", "alert"} {
			id := strconv.Itoa(10*round + i)
			lines = append(lines, callLine(id),
				`{"jsonrpc":"2.0","id":"`+id+`","method":"logging/setLevel","params":{"level":"`+level+`"}}`)
			want = append(want, id, `"`+level+`"`)
		}
		r.send(strings.Join(lines, "\n"))
		for range lines {
			r.await(func(m *mcpserver.Message) bool { return m.ID != nil && m.Result != nil })
		}
	}
	require.Equal(t, want, noted(t, file))
}

// openOrderly opens a client of a gateway before a process that notes in a file what comes. The gateway ends with the test.
func openOrderly(t *testing.T, lists *resume.Memory, file string) *raw {
	self, err := os.Executable()
	require.NoError(t, err)
	w := newWorld(t, lists, mcpbridge.Server{Name: "s", Command: self, Env: map[string]string{processVar: orderly, fileVar: file, "GORACE": "atexit_sleep_ms=0"}})
	t.Cleanup(w.stop)
	r := w.raw()
	r.open()
	return r
}

// callLine returns a call whose argument is its id.
func callLine(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"call","arguments":{"n":` + id + `}}}`
}

// noted returns what the process has noted.
func noted(t *testing.T, file string) []string {
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return strings.Fields(string(data))
}

// orderly is the value of processVar for a process that notes the argument n of each call, and the level of log messages, in the order in
// which they come.
const orderly = "orderly"

// startSuffix ends the name of a file that says how long that process takes to start.
const startSuffix = ".start"

// runOrderly runs that process.
func runOrderly() {
	file, err := os.Create(os.Getenv(fileVar))
	if err != nil {
		panic(err)
	}
	if start, err := os.ReadFile(os.Getenv(fileVar) + startSuffix); err == nil {
		wait, _ := time.ParseDuration(string(start))
		time.Sleep(wait)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		m := new(mcpserver.Message)
		json.Unmarshal(lines.Bytes(), m)
		result := `{}`
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"orderly","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"call","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			fmt.Fprintln(file, string(mcpserver.ObjectOf(mcpserver.ObjectOf(m.Params)["arguments"])["n"]))
			result = `{"content":[]}`
		case "logging/setLevel":
			fmt.Fprintln(file, string(mcpserver.ObjectOf(m.Params)["level"]))
		}
		if m.ID != nil {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
		}
	}
	os.Exit(0)
}
