package benchmarks

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"testing"

	mcpgo "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	mcpgotypes "github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"
)

// mcpGo calls with the client of github.com/mark3labs/mcp-go.
type mcpGo struct{ *mcpgo.Client }

func openMCPGo(r route) (client, error) {
	c, err := mcpgo.NewStreamableHttpClient(r.server.URL,
		transport.WithHTTPBasicClient(tuned),
		transport.WithHTTPLogger(slog.New(slog.DiscardHandler)),
		transport.WithContinuousListening(), //nolint:staticcheck // the other clients have a stream as well
	)
	if err != nil {
		return nil, err
	}
	if err := c.Start(context.Background()); err != nil {
		return nil, err
	}
	var hello mcpgotypes.InitializeRequest
	hello.Params.ProtocolVersion = protocolWithSessions
	hello.Params.ClientInfo = mcpgotypes.Implementation{Name: "bench", Version: "1"}
	_, err = c.Initialize(context.Background(), hello)
	return mcpGo{c}, err
}

func (c mcpGo) call(ctx context.Context, _ string) error {
	var req mcpgotypes.CallToolRequest
	req.Params.Name, req.Params.Arguments = "echo", map[string]any{"text": "hello"}
	result, err := c.CallTool(ctx, req)
	if err == nil && (result.IsError || len(result.Content) != 1) {
		return fmt.Errorf("unexpected result %v", result)
	}
	return err
}

func (mcpGo) drop(context.Context, string) error { return nil }
func (c mcpGo) close()                           { c.Close() }

// otherProcess is a program that makes calls. It reads lines that say how many, and answers each
// with a line that says how long they took.
type otherProcess struct {
	client // cannot make single calls
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
}

// openNode starts the client of the official TypeScript SDK, if make bench-others has installed it.
func openNode(r route) (client, error) {
	cmd := exec.Command("node", "--no-warnings", "node/client.mjs", r.server.URL)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &otherProcess{cmd: cmd, in: in, out: bufio.NewReader(out)}, cmd.Start()
}

// nodeInstalled tells whether make bench-others has run.
func nodeInstalled() bool {
	_, err := os.Stat("node/node_modules/.package-lock.json")
	return err == nil
}

func (p *otherProcess) measure(b *testing.B, callers int) {
	p.makeCalls(b, callers, callers) // opens the session
	b.ResetTimer()
	b.ReportMetric(p.makeCalls(b, b.N, callers)/float64(b.N), "ns/op")
}

// makeCalls returns how many nanoseconds the calls took together.
func (p *otherProcess) makeCalls(b *testing.B, n, callers int) float64 {
	_, err := fmt.Fprintf(p.in, `{"calls":%d,"callers":%d}`+"\n", n, callers)
	require.NoError(b, err)
	line, err := p.out.ReadBytes('\n')
	require.NoError(b, err)
	var took struct{ NS float64 }
	require.NoError(b, json.Unmarshal(line, &took))
	return took.NS
}

func (p *otherProcess) close() {
	p.in.Close()
	p.cmd.Wait()
}
