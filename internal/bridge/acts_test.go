//go:build linux

package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/internal/bridge/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// testProcess names the act that the test binary plays as a server.
const testProcess = "MCPBRIDGE_TEST_PROCESS"

func TestMain(m *testing.M) {
	if act, ok := acts[os.Getenv(testProcess)]; ok {
		act()
		return
	}
	goleak.VerifyTestMain(m)
}

// server returns a server that plays an act.
func server(act string) *mcpbridge.Server {
	return &mcpbridge.Server{Name: "test", Command: os.Args[0], Env: map[string]string{testProcess: act, "TOKEN": "secret-token"}}
}

// acts are servers that end where they should not.
var acts = map[string]func(){
	"die": func() {
		fmt.Fprintln(os.Stderr, "first words\nlast words of", os.Getenv("TOKEN"))
		os.Exit(3)
	},
	"quitter": func() { // answers one request less than the handshake has
		answerNext(`"error":{"code":-32601,"message":"no such method"}`)
		os.Exit(4)
	},
	"waverer": func() { // answers all of them, and is gone
		answerNext(`"error":{"code":-32601,"message":"no such method"}`)
		answerNext(`"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
		os.Exit(4)
	},
	"picky": func() { // reads a call, but for the newline, or but for that and the closing brace; and dies
		answerNext(`"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
		var call []byte
		for b := make([]byte, 1); !bytes.Contains(call, []byte(`"tools/call","params"`)) || !json.Valid(append(call, os.Getenv("MISSING")...)); {
			os.Stdin.Read(b)
			if call = append(call, b[0]); b[0] == '\n' {
				call = nil // it was the notification that comes before
			}
		}
		os.Exit(5)
	},
}

// answerNext answers the next request.
func answerNext(answer string) {
	var line []byte
	for b := make([]byte, 1); b[0] != '\n'; line = append(line, b[0]) {
		os.Stdin.Read(b)
	}
	say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, rpc.Parse(line).ID, answer))
}

func say(words ...any) { fmt.Println(words...) }
