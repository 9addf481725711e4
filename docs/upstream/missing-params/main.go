// Command missing-params shows which messages of a server, without parameters, end the process of
// the client. It runs itself once for each message.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const initialized = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`

func main() {
	if len(os.Args) > 1 {
		client(os.Args[1])
		return
	}
	var messages []string
	for _, message := range []string{`"id":"a","method":"elicitation/create"`, `"method":"notifications/elicitation/complete"`, `"method":"notifications/resources/updated"`} {
		messages = append(messages, message, message+`,"params":null`)
	}
	panics := 0
	for _, message := range messages {
		out, err := exec.Command(os.Args[0], message).CombinedOutput()
		if err != nil {
			if !bytes.HasPrefix(out, []byte("panic: ")) {
				log.Fatalf("%v: %s", err, out)
			}
			panics++
		}
		said, _, _ := bytes.Cut(out, []byte("\n"))
		fmt.Printf("{%s}: %s\n", message, said)
	}
	if panics > 0 {
		fmt.Printf("still so: %d of %d messages of a server end the process\n", panics, len(messages))
		return
	}
	fmt.Println("mended: none ends the process")
}

// client connects to a server that sends one message, and ends when the message is handled.
func client(message string) {
	near, far := net.Pipe()
	handled := make(chan struct{})
	go func() {
		for in := json.NewDecoder(far); ; {
			var msg struct {
				ID     json.RawMessage
				Method string
			}
			if err := in.Decode(&msg); err != nil {
				log.Fatal(err)
			}
			switch {
			case msg.Method == "initialize":
				fmt.Fprintf(far, initialized+"\n", msg.ID)
			case msg.Method == "notifications/initialized":
				fmt.Fprintf(far, `{"jsonrpc":"2.0",%s}`+"\n", message)
				if !strings.Contains(message, `"id"`) { // then what follows it says that it is handled
					fmt.Fprintln(far, `{"jsonrpc":"2.0","id":"a","method":"ping"}`)
				}
			case string(msg.ID) == `"a"`:
				close(handled)
				return
			}
		}
	}()
	_, err := mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "decline"}, nil
		},
		ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
			fmt.Println("updated:", req.Params.URI)
		},
	}).Connect(context.Background(), &mcp.IOTransport{Reader: near, Writer: near}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		log.Fatal(err)
	}
	<-handled
	time.Sleep(5 * time.Second) // a panic of another goroutine ends the process meanwhile
}
