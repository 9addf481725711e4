//go:build linux

package calls

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The tools of the server: one pays, and the other one says whether that was done.
const (
	payTool  = "pay"
	paidTool = "paid"
)

// payment are the arguments of the tools.
type payment struct {
	N int `json:"n"`
}

// receipt is the text of the result of pay.
func receipt(n int) string { return fmt.Sprintf("paid %d", n) }

// notPaid is the text of the result of paid for what was not paid.
const notPaid = "not paid"

// slowest is how long the server takes at most to answer a call that has run.
const slowest = 50 * time.Millisecond

// runServer is the MCP server. pay writes an entry into the ledger, a line in one write, and answers some time later.
func runServer(r role) error {
	file, err := os.OpenFile(r.Ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "payments", Version: "1"}, nil)
	add(server, &mcp.Tool{Name: payTool}, func(n int) (string, error) {
		if _, err := fmt.Fprintln(file, n); err != nil {
			return "", err
		}
		<-time.After(rand.N(slowest))
		return receipt(n), nil
	})
	add(server, &mcp.Tool{Name: paidTool, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(n int) (string, error) {
		entries, err := os.ReadFile(r.Ledger)
		if err != nil || !bytes.Contains(append([]byte("\n"), entries...), fmt.Appendf(nil, "\n%d\n", n)) {
			return notPaid, err
		}
		return receipt(n), nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{JSONResponse: true})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0) // the test is over
	}()
	return http.ListenAndServe(r.Addr, handler)
}

// add adds a tool whose result is a text.
func add(server *mcp.Server, tool *mcp.Tool, run func(n int) (string, error)) {
	mcp.AddTool(server, tool, func(_ context.Context, _ *mcp.CallToolRequest, in payment) (*mcp.CallToolResult, any, error) {
		text, err := run(in.N)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, err
	})
}

// textOf returns the text of a result.
func textOf(r *mcp.CallToolResult) string {
	for _, content := range r.Content {
		if text, is := content.(*mcp.TextContent); is {
			return text.Text
		}
	}
	return ""
}
