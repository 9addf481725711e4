package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
)

// testProcess is an environment variable that names the test server as which the test
// binary runs.
const testProcess = "MCPBRIDGE_TEST_PROCESS"

func TestMain(m *testing.M) {
	if serve, ok := testServers[os.Getenv(testProcess)]; ok {
		serve()
		return
	}
	goleak.VerifyTestMain(m)
}

// server returns the configuration of a test server.
func server(act string) *mcpbridge.Server {
	return &mcpbridge.Server{Name: "test", Command: os.Args[0], Env: map[string]string{testProcess: act, "TOKEN": "secret-token"}}
}

// testServers are the servers as which the test binary can run. They exit at the wrong
// time.
var testServers = map[string]func(){
	"die": func() {
		fmt.Fprintln(os.Stderr, "first words\nlast words of", os.Getenv("TOKEN"))
		os.Exit(3)
	},
	"babbler": func() { // prints a text without end
		for text := strings.Repeat("no message ", 1<<10); ; {
			if _, err := fmt.Print(text); err != nil {
				return
			}
		}
	},
	"future": func() { // speaks a protocol of its own
		answerNext(`"result":{"protocolVersion":"3000-01-01","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
		io.Copy(io.Discard, os.Stdin)
	},
	"quitter": func() { // exits before the last request of the handshake
		if id, method := readNext(); method == rpc.MethodDiscover {
			answer(id, `"error":{"code":-32601,"message":"no such method"}`)
		}
		os.Exit(4)
	},
	"waverer": func() { // exits after the handshake
		id, method := readNext()
		if method == rpc.MethodDiscover {
			answer(id, `"error":{"code":-32601,"message":"no such method"}`)
			id, _ = readNext()
		}
		answer(id, `"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
		os.Exit(4)
	},
	"discovered": serveDiscovered,
	"picky": func() { // reads a call up to the newline, or up to the closing brace, and exits
		answerNext(`"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
		var call []byte
		for b := make([]byte, 1); !bytes.Contains(call, []byte(`"tools/call","params"`)) || !json.Valid(append(call, os.Getenv("MISSING")...)); {
			os.Stdin.Read(b)
			if call = append(call, b[0]); b[0] == '\n' {
				call = nil // this line was the notification before the call
			}
		}
		os.Exit(5)
	},
}

// answerNext answers the next request.
func answerNext(outcome string) {
	id, _ := readNext()
	answer(id, outcome)
}

// readNext reads the next message.
func readNext() (id json.RawMessage, method string) {
	var line []byte
	for b := make([]byte, 1); b[0] != '\n'; line = append(line, b[0]) {
		os.Stdin.Read(b)
	}
	msg := rpc.Parse(line)
	return msg.ID, msg.Method
}

func answer(id json.RawMessage, outcome string) {
	printLine(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, id, outcome))
}

func printLine(words ...any) { fmt.Println(words...) }
