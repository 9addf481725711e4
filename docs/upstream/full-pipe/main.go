// Command full-pipe shows that a call and Close wait without end for a server that has stopped to
// read its standard input, whatever the context of the call.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const initialized = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`

// wait is how long a call may take when its context has ended. Its length matters only when this is mended.
const wait = 500 * time.Millisecond

func main() {
	stdin, toServer := io.Pipe()
	fromServer, stdout := io.Pipe()
	hangs := make(chan struct{})
	go func() { // a server that hangs when it begins to read the call
		in := bufio.NewReader(stdin)
		_, _ = in.ReadString('\n')
		fmt.Fprintln(stdout, initialized)
		_, _ = in.ReadString('\n')
		_, _ = in.ReadByte()
		close(hangs)
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		log.Fatal(err)
	}
	hanging := 0
	returns := func(name string, f func() error) {
		returned := make(chan error, 1)
		go func() { returned <- f() }()
		select {
		case err := <-returned:
			fmt.Printf("%s returned: %v\n", name, err)
		case <-time.After(wait):
			hanging++
			fmt.Printf("%s has not returned after %v\n", name, wait)
		}
	}
	returns("CallTool, whose context has ended,", func() error {
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			<-hangs
			cancel()
		}()
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "x", Arguments: map[string]string{"a": strings.Repeat("x", 1<<17)}})
		return err
	})
	returns("Close", session.Close)
	if hanging > 0 {
		fmt.Println("still so: a pipe that nobody reads holds calls and Close for ever")
		return
	}
	fmt.Println("mended: the context of a call ends its write")
}
