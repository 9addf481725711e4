//go:build real

package real

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// otherClient is a client that nobody here wrote.
type otherClient interface {
	// list returns the things of a list, as JSON.
	list(method string) string
	// call calls a tool, and returns the content of the result, or the error, as text.
	call(tool string, args arguments) (said string, isError bool)
	// leave ends the connection.
	leave()
}

const inspector, python = "inspector", "python"

// otherClients are the kinds of clients. Each leaves at the end of the test.
var otherClients = map[string]func(*harness, target) otherClient{
	"go-sdk":       connectGo,
	"typescript":   func(h *harness, to target) otherClient { return startTypeScript(h, 1, 1, to)[0] },
	"typescript 2": func(h *harness, to target) otherClient { return startTypeScript(h, 2, 1, to)[0] },
	python:         connectPython,
	inspector:      func(h *harness, to target) otherClient { return &inspectorClient{h, to} },
}

// needsClient skips a test with a kind of client that is not installed.
func needsClient(t *testing.T, kind string) {
	t.Helper()
	if kind == python && pythonWithSDK() == "" {
		t.Skip("there is no Python with the package mcp, which is python3-mcp in Debian")
	}
}

// textOf returns the content of the result of a tool.
func textOf(result []byte) (said string, isError bool) {
	var r struct {
		Content json.RawMessage
		IsError bool
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return err.Error(), true
	}
	return string(r.Content), r.IsError
}

// goClient is a client on the SDK for Go.
type goClient struct {
	h       *harness
	session *mcp.ClientSession
	left    sync.Once
}

func connectGo(h *harness, to target) otherClient {
	h.t.Helper()
	ctx, cancel := context.WithDeadline(context.Background(), h.limit)
	defer cancel()
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: to.url}
	if to.url == "" {
		cmd := exec.Command(to.command[0], to.command[1:]...)
		cmd.Env = os.Environ()
		for name, value := range to.env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		transport = &mcp.CommandTransport{Command: cmd, TerminateDuration: 2 * time.Second}
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "go", Version: "1"}, nil).Connect(ctx, transport, nil)
	require.NoError(h.t, err)
	c := &goClient{h: h, session: session}
	h.atEnd(c.leave)
	return c
}

func (c *goClient) list(string) string {
	ctx, cancel := context.WithDeadline(context.Background(), c.h.limit)
	defer cancel()
	all := []*mcp.Tool{}
	for tool, err := range c.session.Tools(ctx, nil) {
		require.NoError(c.h.t, err)
		all = append(all, tool)
	}
	listed, err := json.Marshal(all)
	require.NoError(c.h.t, err)
	return string(listed)
}

func (c *goClient) call(tool string, args arguments) (string, bool) {
	ctx, cancel := context.WithDeadline(context.Background(), c.h.limit)
	defer cancel()
	result, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return err.Error(), true
	}
	data, err := json.Marshal(result)
	if err != nil {
		return err.Error(), true
	}
	return textOf(data)
}

func (c *goClient) leave() { c.left.Do(func() { c.session.Close() }) }

// inspectorClient is the command line of the inspector, which connects for each call.
type inspectorClient struct {
	h  *harness
	to target
}

func (*inspectorClient) leave() {}

func (c *inspectorClient) run(args ...string) ([]byte, error) {
	here, err := os.Getwd()
	require.NoError(c.h.t, err)
	entry := map[string]any{"type": "http", "url": c.to.url}
	if c.to.url == "" {
		entry = map[string]any{"command": c.to.command[0], "args": c.to.command[1:], "env": c.to.env}
	}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"s": entry}})
	require.NoError(c.h.t, err)
	file := filepath.Join(c.h.dir, "inspector.json")
	require.NoError(c.h.t, os.WriteFile(file, config, 0o600))
	command := append([]string{
		filepath.Join(here, "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"), "--cli", "--config", file, "--server", "s",
	}, args...)
	ctx, cancel := context.WithDeadline(context.Background(), c.h.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, newerNode(c.h.t), command...)
	cmd.Dir, cmd.Env = c.h.dir, append(os.Environ(), "MCP_INSPECTOR_SECRET_STORE=memory")
	return cmd.Output()
}

func (c *inspectorClient) list(method string) string {
	out, err := c.run("--method", method)
	require.NoError(c.h.t, err, "%s", exitText(err))
	var result struct{ Tools json.RawMessage }
	require.NoError(c.h.t, json.Unmarshal(out, &result), "%s", out)
	return string(result.Tools)
}

func (c *inspectorClient) call(tool string, args arguments) (string, bool) {
	flags := []string{"--method", "tools/call", "--tool-name", tool}
	for name, value := range args {
		text, is := value.(string)
		if !is {
			data, err := json.Marshal(value)
			require.NoError(c.h.t, err)
			text = string(data)
		}
		flags = append(flags, "--tool-arg", name+"="+text)
	}
	out, err := c.run(flags...)
	if err != nil && len(out) == 0 {
		return exitText(err), true
	}
	return textOf(out)
}

func exitText(err error) string {
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		return fmt.Sprintf("%v: %s", err, exit.Stderr)
	}
	return fmt.Sprint(err)
}

// newerNode returns the Node that the inspector needs.
func newerNode(t *testing.T) string {
	path, err := filepath.Abs("node_modules/.bin/node")
	require.NoError(t, err)
	require.FileExists(t, path, "run tests/real/install")
	return path
}

// clientProgram is a process with clients on another SDK: a program of the folder clients.
type clientProgram struct {
	h      *harness
	cmd    *exec.Cmd
	output string // the file of its errors

	mu        sync.Mutex
	in        io.WriteCloser
	last      int
	waiting   map[int]chan programAnswer
	connected chan programAnswer
	ended     chan struct{} // its output has ended
}

type programAnswer struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  string          `json:"error"`
}

// programClient is one of the clients.
type programClient struct {
	*clientProgram
	number int
}

// startTypeScript starts n clients on a version of the SDK for TypeScript, and waits until all are connected.
func startTypeScript(h *harness, version, n int, to target) []otherClient {
	h.t.Helper()
	return startClients(h, []string{"node", installed(h.t, "../clients/typescript.mjs")}, map[string]any{"sdk": version}, n, to)
}

// connectPython starts a client on the SDK for Python.
func connectPython(h *harness, to target) otherClient {
	h.t.Helper()
	return startClients(h, []string{pythonWithSDK(), "clients/python.py"}, map[string]any{}, 1, to)[0]
}

// pythonWithSDK returns a Python that has the SDK, or nothing. Debian's has what Debian's packages install.
var pythonWithSDK = sync.OnceValue(func() string {
	for _, program := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(program, "-c", "import mcp").Run() == nil {
			return program
		}
	}
	return ""
})

// startClients starts a program with n clients, and waits until all are connected.
func startClients(h *harness, program []string, options map[string]any, n int, to target) (all []otherClient) {
	h.t.Helper()
	options["clients"] = n
	p := launchClients(h, program, options, to)
	p.awaitConnected()
	for number := range n {
		all = append(all, &programClient{p, number})
	}
	return all
}

// launchClients starts a program with clients.
func launchClients(h *harness, program []string, options map[string]any, to target) *clientProgram {
	h.t.Helper()
	if to.url != "" {
		options["url"] = to.url
	} else {
		options["command"], options["args"], options["env"] = to.command[0], to.command[1:], to.env
	}
	data, err := json.Marshal(options)
	require.NoError(h.t, err)
	output, err := os.Create(filepath.Join(h.dir, fmt.Sprintf("client-%d.output", time.Now().UnixNano())))
	require.NoError(h.t, err)
	defer output.Close()
	p := &clientProgram{
		h: h, cmd: exec.Command(program[0], append(program[1:], string(data))...), output: output.Name(),
		waiting: map[int]chan programAnswer{}, connected: make(chan programAnswer, 1), ended: make(chan struct{}),
	}
	p.cmd.Stderr = output
	p.in, err = p.cmd.StdinPipe()
	require.NoError(h.t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(h.t, err)
	p.waiting[0] = p.connected
	require.NoError(h.t, p.cmd.Start())
	go p.read(out)
	h.atEnd(func() {
		p.leave()
		if h.t.Failed() {
			said, _ := os.ReadFile(p.output)
			h.t.Logf("the clients said: %s", said)
		}
	})
	return p
}

// awaitConnected waits until all clients of a program are connected.
func (p *clientProgram) awaitConnected() {
	p.h.t.Helper()
	select {
	case <-p.connected:
	case <-p.ended:
		said, _ := os.ReadFile(p.output)
		require.Fail(p.h.t, "the clients did not connect", "%s", said)
	case <-time.After(time.Until(p.h.limit)):
		require.Fail(p.h.t, "the clients did not connect in time")
	}
}

func (p *clientProgram) read(out io.Reader) {
	defer close(p.ended)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		a := programAnswer{ID: -1}
		if json.Unmarshal(lines.Bytes(), &a) != nil {
			continue
		}
		p.mu.Lock()
		if answer := p.waiting[a.ID]; answer != nil {
			answer <- a
			delete(p.waiting, a.ID)
		}
		p.mu.Unlock()
	}
}

// request sends a request of a client, and waits for the answer.
func (c *programClient) request(method string, params any) programAnswer {
	answer := make(chan programAnswer, 1)
	c.mu.Lock()
	c.last++
	c.waiting[c.last] = answer
	line, err := json.Marshal(map[string]any{"id": c.last, "client": c.number, "method": method, "params": params})
	if err == nil {
		_, err = c.in.Write(append(line, '\n'))
	}
	c.mu.Unlock()
	if err != nil {
		return programAnswer{Error: err.Error()}
	}
	select {
	case a := <-answer:
		return a
	case <-c.ended:
		return programAnswer{Error: "the client has ended"}
	case <-time.After(time.Until(c.h.limit)):
		return programAnswer{Error: "there was no answer in time"}
	}
}

func (c *programClient) list(method string) string {
	a := c.request(method, map[string]any{})
	require.Empty(c.h.t, a.Error)
	var result struct{ Tools json.RawMessage }
	require.NoError(c.h.t, json.Unmarshal(a.Result, &result))
	return string(result.Tools)
}

func (c *programClient) call(tool string, args arguments) (string, bool) {
	a := c.request("tools/call", map[string]any{"name": tool, "arguments": args})
	if a.Error != "" {
		return a.Error, true
	}
	return textOf(a.Result)
}

// leave ends all clients of the process.
func (p *clientProgram) leave() {
	p.mu.Lock()
	p.in.Close()
	p.mu.Unlock()
	select {
	case <-p.ended:
	case <-time.After(5 * time.Second):
		p.cmd.Process.Kill()
	}
	p.cmd.Wait()
}
