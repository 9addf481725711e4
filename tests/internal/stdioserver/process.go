// Package stdioserver is a stdio server that misbehaves on command.
package stdioserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// Trait is how a [Process] misbehaves from its start.
type Trait string

// The traits.
const (
	// Stubborn: it ignores SIGTERM and the end of its stdin.
	Stubborn Trait = "stubborn"
	// Dies: it exits with status 3 at once, having written to stderr.
	Dies Trait = "dies"
	// Mute: it reads everything and answers nothing.
	Mute Trait = "mute"
	// Babbling: it answers each request with text that is not JSON.
	Babbling Trait = "babbling"
	// Antique: it offers only a version of the protocol that does not exist.
	Antique Trait = "antique"
)

// Process is a stdio server that misbehaves on command. For each session it starts the
// running program once more. The program must call [Main] first. It has the tools of
// [faults.Tools]. But the first run of "wait" with some argument "call" never returns, and the
// second returns at once. It also has these tools:
//
//	pid     returns its process id
//	spawn   starts a child that keeps stdout open and ignores SIGTERM, and returns the
//	        child's process id
//	report  reports progress each 20 ms, as often as its argument "size" says
//	exit    writes to stderr, and exits with status 7
//	flood   writes as many bytes to stderr as its argument "size" says
//	garble  writes a line to stdout that is not JSON-RPC
//	line    writes a line of as many bytes to stdout as its argument "size" says, which
//	        is JSON but no message
//	half    writes half a message to stdout, and exits with status 0
//	stop    answers, and then stops itself with SIGSTOP
//	lose    refuses every later request but pings with the JSON-RPC error in its argument
//	        "refusal", like a gateway whose own server has died
type Process struct {
	dir   string
	trait Trait
}

// New returns a process with a trait; "" is none. It keeps its records in dir,
// which must be empty.
func New(dir string, trait Trait) *Process { return &Process{dir, trait} }

const (
	traitVar = "MCPACTOR_FAULTS_TRAIT"
	dirVar   = "MCPACTOR_FAULTS_DIR"
)

// Server returns the configuration of the server, for a supervisor.
func (p *Process) Server(name string) (mcpbridge.Server, error) {
	exe, err := os.Executable()
	if err != nil {
		return mcpbridge.Server{}, fmt.Errorf("stdioserver: %w", err)
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return mcpbridge.Server{}, fmt.Errorf("stdioserver: %w", err)
	}
	env := map[string]string{traitVar: string(p.trait), dirVar: p.dir, "GORACE": "atexit_sleep_ms=0"}
	return mcpbridge.Server{Name: name, Command: exe, Env: env}, nil
}

// Executions returns how often each call has run, by its argument "call".
func (p *Process) Executions() (map[string]int, error) {
	runs := map[string]int{}
	lines, err := p.read("runs")
	for _, call := range lines {
		runs[call]++
	}
	return runs, err
}

// Overlaps returns the scopes that had two processes at the same time. The scope of a
// process is the argument "scope" of its calls.
func (p *Process) Overlaps() ([]string, error) { return p.read("overlaps") }

func (p *Process) read(name string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(p.dir, name))
	if os.IsNotExist(err) {
		return nil, nil
	}
	lines := strings.Fields(string(text))
	for i, line := range lines {
		lines[i], _ = url.PathUnescape(line) // as it was escaped
	}
	return lines, err
}

// Main runs the server if the program was started as a [Process], and does not return
// then. Otherwise it does nothing. The program must call it first, in main or in
// TestMain:
//
//	func TestMain(m *testing.M) {
//		stdioserver.Main()
//		os.Exit(m.Run())
//	}
func Main() {
	dir, ok := os.LookupEnv(dirVar)
	if !ok {
		return
	}
	s := &stdio{dir: dir, locks: map[string]*os.File{}}
	os.Exit(s.main(Trait(os.Getenv(traitVar))))
}

// sleeper is the trait of a child process.
const sleeper Trait = "sleeper"

// main runs the process until it exits.
func (s *stdio) main(trait Trait) (status int) {
	switch trait {
	case Dies:
		fmt.Fprintln(os.Stderr, "reading configuration\nno license found")
		return 3
	case Mute:
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // it ends at the end of stdin
		return 0
	case Babbling:
		answerAll(func(message) string { return "Welcome to the server!" })
		return 0
	case Antique:
		answerAll(func(msg message) string {
			if msg.Method != "initialize" {
				return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, msg.ID)
			}
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"antique","version":"1"}}}`, msg.ID)
		})
		return 0
	case Stubborn, sleeper:
		signal.Ignore(syscall.SIGTERM)
	}
	if trait == sleeper {
		fmt.Fprintln(os.Stderr, "ready")
	} else if err := s.serve(); err == nil && trait != Stubborn {
		return 0
	}
	if trait == Stubborn || trait == sleeper {
		<-time.After(time.Hour) // until it is killed
	}
	return 1
}

// message is the part of a request that the server needs.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

// answerAll answers every request with one line, until the end of stdin.
func answerAll(answer func(message) string) {
	for in := json.NewDecoder(os.Stdin); ; {
		var msg message
		if in.Decode(&msg) != nil {
			return
		}
		if msg.ID != nil {
			fmt.Println(answer(msg))
		}
	}
}

// stdio is the server in the process.
type stdio struct {
	dir string

	mu      sync.Mutex
	locks   map[string]*os.File // by scope
	refusal *jsonrpc.Error      // the answer to every request but pings, or nil
}

// serve serves until the end of stdin.
func (s *stdio) serve() error {
	server := faults.NewTools().Server()
	for _, name := range []string{"wait", "pid", "spawn", "report", "exit", "flood", "garble", "line", "half", "stop", "lose"} {
		mcp.AddTool(server, &mcp.Tool{Name: name}, s.command)
	}
	mcp.AddTool(server, &mcp.Tool{Name: "wait/ro", Annotations: &mcp.ToolAnnotations{IdempotentHint: true}}, s.command)
	server.AddReceivingMiddleware(s.record)
	return server.Run(context.Background(), &mcp.StdioTransport{})
}

// record records every call before it runs.
func (s *stdio) record(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		s.mu.Lock()
		refusal := s.refusal
		s.mu.Unlock()
		if refusal != nil && method != "ping" && !strings.HasPrefix(method, "notifications/") {
			return nil, refusal
		}
		call, ok := req.(*mcp.CallToolRequest)
		if !ok {
			return next(ctx, method, req)
		}
		again, err := s.note(argsOf(call))
		if err != nil {
			return nil, err
		}
		return next(context.WithValue(ctx, againKey{}, again), method, req)
	}
}

type againKey struct{}

// command runs the tools that only a process has.
func (s *stdio) command(ctx context.Context, req *mcp.CallToolRequest, in arguments) (*mcp.CallToolResult, any, error) {
	text := "done"
	switch strings.TrimSuffix(req.Params.Name, "/ro") {
	case "wait":
		if again, _ := ctx.Value(againKey{}).(bool); !again {
			<-ctx.Done()
			return nil, nil, ctx.Err()
		}
	case "pid":
		text = fmt.Sprint(os.Getpid())
	case "lose":
		refusal := new(jsonrpc.Error)
		if err := json.Unmarshal([]byte(in.Refusal), refusal); err != nil {
			return nil, nil, err
		}
		s.mu.Lock()
		s.refusal = refusal
		s.mu.Unlock()
	case "spawn":
		child, err := spawn()
		if err != nil {
			return nil, nil, err
		}
		text = fmt.Sprint(child)
	case "report":
		for i := range in.Size {
			time.Sleep(20 * time.Millisecond)
			progress := &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i)}
			if err := req.Session.NotifyProgress(ctx, progress); err != nil {
				return nil, nil, err
			}
		}
	case "exit":
		fmt.Fprintf(os.Stderr, "out of memory: %s\n", req.Params.Arguments) // as tracebacks do
		os.Exit(7)
	case "flood":
		fmt.Fprintln(os.Stderr, strings.Repeat("x", in.Size))
	case "garble":
		fmt.Println("Segmentation fault (just kidding)")
	case "line":
		fmt.Printf("%q\n", strings.Repeat("x", in.Size))
	case "half":
		fmt.Print(`{"jsonrpc":"2.0","id":`)
		os.Exit(0)
	case "stop":
		time.AfterFunc(100*time.Millisecond, suspend)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
}

// spawn starts a child, and waits until it ignores SIGTERM.
func spawn() (pid int, err error) {
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	child := exec.Command(exe)
	child.Env = append(os.Environ(), traitVar+"="+string(sleeper))
	child.Stdout = os.Stdout
	said, err := child.StderrPipe()
	if err != nil {
		return 0, err
	}
	if err := child.Start(); err != nil {
		return 0, err
	}
	_, err = said.Read(make([]byte, 1))
	return child.Process.Pid, err
}
