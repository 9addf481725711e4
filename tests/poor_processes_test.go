package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
)

// rawVar names the habits of a process that is a raw server, and rawDirVar the directory of
// its records.
const (
	rawVar    = "MCPACTOR_TEST_RAW"
	rawDirVar = "MCPACTOR_TEST_RAW_DIR"
)

// before puts a text before each answer.
func before(text string) habits {
	return habits{write: func(answer string) string { return text + answer }}
}

// textBeforeTheFirstCount puts a text into the line of the first answer of count.
func textBeforeTheFirstCount(answer string) string {
	if strings.Contains(answer, `"text":"1"`) {
		return "done: " + answer
	}
	return answer
}

// oddProcesses are servers over stdio that are poor or odd, each in one way.
var oddProcesses = map[string]habits{
	"plain":                     {},
	"no ping":                   odd["no ping"],
	"no lists":                  odd["no lists"],
	"no ping and no lists":      odd["no ping and no lists"],
	"a byte order mark":         odd["a byte order mark"],
	"blanks":                    odd["blanks"],
	"an array of one":           odd["an array of one"],
	"ids as strings":            odd["ids as strings"],
	"ids as floats":             odd["ids as floats"],
	"ids of 14 digits":          odd["ids of 14 digits"],
	"ids of 32 bits":            odd["ids of 32 bits"],
	"another revision":          odd["another revision"],
	"an exit at discovery":      {instead: map[string]string{"server/discover": exits}},
	"a banner":                  {banner: "\n> server@1.0.0 start\n> node index.js\n\n"},
	"a banner with a mark":      {banner: "\ufeffListening on stdio\n"},
	"a banner without an end":   {banner: "Starting ... "},
	"a banner of JSON":          {banner: "{\n  \"port\": 3000,\n  \"tools\": [\"count\"]\n}\n"},
	"a line before each answer": before("INFO handling a request\n"),
	"JSON of a logger":          before(`{"level":30,"time":1,"msg":"request","id":1}` + "\n"),
	"an object of JavaScript":   before("{\n  port: 3000,\n  tools: [ 'count' ]\n}\n"),
	"a log of its traffic":      {write: func(answer string) string { return "sent " + answer + "\n" + answer }},
	"text in the line":          {write: textBeforeTheFirstCount}, // a second passes for each such answer
	"line ends of Windows":      {write: func(answer string) string { return answer + "\r" }},
	"empty lines":               {write: func(answer string) string { return "\n\n" + answer + "\n" }},
	"several lines a message":   {write: func(answer string) string { return strings.ReplaceAll(answer, ",", ",\n  ") }},
	"two messages a line": {write: func(answer string) string {
		return `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}` + answer
	}},
}

// exits stands for the end of the process in place of an answer.
const exits = "exit"

// refusing returns the habits of a process that refuses a request, such as "ping/-32601".
func refusing(name string) (habits, bool) {
	for _, how := range waysToRefuse {
		if method, is := strings.CutSuffix(name, "/"+how.name); is && how.instead != none {
			return habits{instead: map[string]string{method: how.instead}}, true
		}
	}
	return habits{}, false
}

// runRaw runs a raw server over stdio in this process.
func runRaw(name string) {
	dir := os.Getenv(rawDirVar)
	of, is := oddProcesses[name]
	if !is {
		of, _ = refusing(name)
	}
	s := newRawServer(of)
	s.ran = func(call string) int { return len(record(filepath.Join(dir, "runs"), call)) }
	record(filepath.Join(dir, "pids"), strconv.Itoa(os.Getpid()))
	s.serveLines(os.Stdin, os.Stdout)
	os.Exit(0)
}

// record adds a line to a file, and returns the lines that are equal to it.
func record(path, line string) (same []string) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(file, line)
		file.Close()
	}
	if err != nil {
		panic(err)
	}
	for _, other := range linesOf(path) {
		if other == line {
			same = append(same, other)
		}
	}
	return same
}

// linesOf returns the lines of a file.
func linesOf(path string) []string {
	text, _ := os.ReadFile(path)
	return strings.Fields(string(text))
}

// C3, C11: a server over stdio that another client can call works at the first call, and after
// its process was killed between calls and in a call. The call that was cut is answered
// honestly.
func TestProcessesThatArePoorOrOddWorkAgainAfterEachEnd(t *testing.T) {
	t.Parallel()
	for name := range oddProcesses {
		t.Run(name, func(t *testing.T) { requireProcessWorksAgain(t, name) })
	}
}

// C11: a process that ends at server/discover is started once more, and a later supervisor with the same store does not ask.
func TestStoreRemembersWhichProcessesEndAtDiscovery(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	require.NoError(t, err)
	dir, store := t.TempDir(), new(resume.Memory)
	env := map[string]string{rawVar: "an exit at discovery", rawDirVar: dir, "GORACE": "atexit_sleep_ms=0"}
	for _, starts := range []int{2, 3, 4} {
		h := start(t, supervisor.Config{Store: store, Servers: []mcpbridge.Server{{Name: "s", Command: exe, Env: env}}})
		h.send(call("a", "count")).ok()
		h.stop()
		require.Len(t, linesOf(filepath.Join(dir, "pids")), starts)
	}
}

// C11: the same where the server refuses what a session asks by itself.
func TestRequestsOfOurOwnThatAProcessRefusesChangeNoCall(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"server/discover", "ping", "tools/list"} {
		for _, how := range waysToRefuse {
			name := method + "/" + how.name
			if _, is := refusing(name); is {
				t.Run(name, func(t *testing.T) { requireProcessWorksAgain(t, name) })
			}
		}
	}
}

// requireProcessWorksAgain kills a raw server between calls and in a call.
func requireProcessWorksAgain(t *testing.T, name string) {
	t.Parallel()
	dir := t.TempDir()
	exe, err := os.Executable()
	require.NoError(t, err)
	env := map[string]string{rawVar: name, rawDirVar: dir, "GORACE": "atexit_sleep_ms=0"}
	h := start(t, supervisor.Config{
		CallTimeout: 20 * time.Second, ConnectTimeout: 20 * time.Second, BackoffBase: time.Millisecond, Servers: []mcpbridge.Server{{Name: "s", Command: exe, Env: env}},
	})
	defer h.stop()
	h.executed = func() map[string]int {
		runs := map[string]int{}
		for _, call := range linesOf(filepath.Join(dir, "runs")) {
			runs[call]++
		}
		return runs
	}
	kill := func() {
		pids := linesOf(filepath.Join(dir, "pids"))
		pid, err := strconv.Atoi(pids[len(pids)-1])
		require.NoError(t, err)
		kill(t, pid)
		requireExit(t, pid)
	}
	p := &plain{harness: h, noLists: strings.Contains(name, "no lists") || strings.Contains(name, "tools/list")}
	p.ask()
	require.Equal(t, []string{"1", "2", "tools"}, p.said)
	kill()
	p.ask()
	once, again := call("a", "wait"), call("a", "wait", replay(messages.ReplayAlways))
	first, second := p.send(once), p.send(again)
	h.awaitExecution(once)
	h.awaitExecution(again)
	kill()
	p.note(first, second)
	p.ask()
	p.requireOutcomes("1 2 tools 1 2 tools lost? 1 2 3 tools", 15*time.Second)
	h.stopAndVerify()
}
