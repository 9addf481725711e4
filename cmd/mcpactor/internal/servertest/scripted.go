package servertest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ScriptVar makes a test binary a server over stdio: it names the file with its [Script].
const ScriptVar = "MCPACTOR_TEST_SCRIPT"

// Script is what a server says. It is read again for each request.
type Script struct {
	Version      string
	Instructions string            `json:",omitempty"`
	Pages        []json.RawMessage // of its list of tools
	Prompts      []any
	// Later are the pages after so many Calls of one process, of which the client is told, and in each process after so many others: since
	// the script was written.
	Calls, Processes int
	Later            []json.RawMessage
}

// Write writes the script of a server.
func (s Script) Write(t *testing.T, path string) {
	t.Helper()
	data, err := json.Marshal(s)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path+".new", data, 0o600))
	require.NoError(t, os.Rename(path+".new", path))
	require.NoError(t, os.RemoveAll(path+started))
}

// Entry returns the entry of the server with a script in a configuration file.
func Entry(t *testing.T, script string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	entry, err := json.Marshal(map[string]any{"command": self, "env": map[string]string{ScriptVar: script, "GORACE": "atexit_sleep_ms=0"}})
	require.NoError(t, err)
	return string(entry)
}

// Called returns which tools and prompts the servers with a script have run.
func Called(t *testing.T, script string) []string {
	t.Helper()
	names, err := noted(script + called)
	require.NoError(t, err)
	return names
}

// RunIfScripted is the server with a script until its input ends, if this process is to be one.
func RunIfScripted() {
	path := os.Getenv(ScriptVar)
	if path == "" {
		return
	}
	note(path+started, "started")
	before, err := noted(path + started)
	if err != nil {
		panic(err)
	}
	calls := 0
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var s Script
		data, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(data, &s)
		}
		if err != nil {
			panic(err)
		}
		var request struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name, Cursor, ProtocolVersion string }
		}
		if json.Unmarshal(in.Bytes(), &request) != nil || request.ID == nil {
			continue
		}
		var result any = map[string]any{}
		switch request.Method {
		case "initialize":
			result = map[string]any{
				"protocolVersion": request.Params.ProtocolVersion, "serverInfo": map[string]any{"name": "scripted", "version": s.Version}, "instructions": s.Instructions,
				"capabilities": map[string]any{"tools": map[string]any{"listChanged": true}, "prompts": map[string]any{}},
			}
		case "tools/list":
			pages := s.Pages
			if s.Calls > 0 && calls >= s.Calls || s.Processes > 0 && len(before) > s.Processes {
				pages = s.Later
			}
			result = page(pages, request.Params.Cursor)
		case "prompts/list":
			result = map[string]any{"prompts": append([]any{}, s.Prompts...)}
		case "tools/call", "prompts/get":
			calls++
			note(path+called, request.Params.Name)
			result = map[string]any{"content": []any{map[string]any{"type": "text", "text": request.Params.Name}}, "messages": []any{}}
			if calls == s.Calls {
				fmt.Println(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			}
		}
		answer, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": request.ID, "result": result})
		if err != nil {
			panic(err)
		}
		fmt.Println(string(answer))
	}
	os.Exit(0)
}

// page returns the page of the list of tools that a cursor names.
func page(pages []json.RawMessage, cursor string) map[string]any {
	at, _ := strconv.Atoi(cursor) // the first page has none
	if at >= len(pages) {
		return map[string]any{"tools": []any{}}
	}
	result := map[string]any{"tools": pages[at]}
	if at+1 < len(pages) {
		result["nextCursor"] = strconv.Itoa(at + 1)
	}
	return result
}

// What is appended to the path of a script for the files with what its servers note.
const (
	called  = ".called"
	started = ".started"
)

// noted returns the words of a file.
func noted(path string) ([]string, error) {
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		err = nil
	}
	return strings.Fields(string(data)), err
}

// note appends a word to a file.
func note(path, name string) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	fmt.Fprintln(file, name)
}
