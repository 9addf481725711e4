// Command gopeer is a client on the SDK for Go, of the old or of the new protocol. It prints a line for each case:
//
//	gopeer old|new URL
//	gopeer old|new COMMAND [ARGUMENT...]
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	connectTimeout = 20 * time.Second
	caseTimeout    = 10 * time.Second
	// closeTimeout bounds the end of the session: the SDK waits for subscriptions that stay open.
	closeTimeout = 1500 * time.Millisecond

	newest   = "2026-07-28"
	sessions = "2025-11-25"
)

// peer is a client with its session, and what the server has told it.
type peer struct {
	version         string
	session         *mcp.ClientSession
	lines, progress atomic.Int64
	changed         chan struct{}
	updated         chan struct{}
	acknowledged    chan struct{} // in the new protocol: first for the changes of lists
}

func main() {
	p := &peer{version: sessions, changed: make(chan struct{}, 9), updated: make(chan struct{}, 9), acknowledged: make(chan struct{}, 9)}
	if os.Args[1] == "new" {
		p.version = newest
	}
	failed := p.connect(os.Args[2:])
	for _, one := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"list", p.list},
		{"call", p.callsTool},
		{"progress", p.hearsOfProgress},
		{"elicit-accept", p.answers},
		{"log-line", p.hearsLog},
		{"list-changed", p.hearsOfList},
		{"resource-updated", p.hearsOfUpdate},
	} {
		err := failed
		if err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), caseTimeout)
			err = one.run(ctx)
			cancel()
		}
		if err != nil {
			fmt.Println("FAIL", one.name, strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Println("PASS", one.name)
		}
	}
	p.close()
}

// connect connects to a URL, or to a command that it starts.
func (p *peer) connect(to []string) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "gopeer", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			if r.Params.Data == "line-g1" {
				p.lines.Add(1)
			}
		},
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { p.progress.Add(1) },
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { p.changed <- struct{}{} },
		ResourceUpdatedHandler:      func(context.Context, *mcp.ResourceUpdatedNotificationRequest) { p.updated <- struct{}{} },
	})
	client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if method == "notifications/subscriptions/acknowledged" {
				p.acknowledged <- struct{}{}
			}
			return next(ctx, method, r)
		}
	})
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: to[0]}
	if !strings.HasPrefix(to[0], "http") {
		transport = &mcp.CommandTransport{Command: exec.Command(to[0], to[1:]...), TerminateDuration: time.Second}
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: p.version})
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	p.session = session
	if got := session.InitializeResult().ProtocolVersion; got != p.version { // the SDK falls back to initialize
		return fmt.Errorf("connected with %s", got)
	}
	return nil
}

// close ends the session.
func (p *peer) close() {
	if p.session == nil {
		return
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		p.session.Close()
	}()
	wait(closed, closeTimeout)
}

// wait waits for a channel, and reports whether anything came in time.
func wait(c <-chan struct{}, limit time.Duration) bool {
	select {
	case <-c:
		return true
	case <-time.After(limit):
		return false
	}
}

// call calls a tool, and returns an error unless its text is the wanted one.
func (p *peer) call(ctx context.Context, tool, want string, meta mcp.Meta, args map[string]any) error {
	r, err := p.session.CallTool(ctx, &mcp.CallToolParams{Meta: meta, Name: tool, Arguments: args})
	if err != nil {
		return err
	}
	if len(r.Content) > 0 {
		if text, is := r.Content[0].(*mcp.TextContent); is && text.Text == want {
			return nil
		} else if is {
			return errors.New(text.Text)
		}
	}
	return errors.New("a result without text")
}

func (p *peer) list(ctx context.Context) error {
	r, err := p.session.ListTools(ctx, nil)
	for err != nil && strings.Contains(err.Error(), "has not answered yet") { // the first start of the server takes longer
		r, err = p.session.ListTools(ctx, nil)
	}
	if err == nil && len(r.Tools) < 8 {
		err = fmt.Errorf("%d tools", len(r.Tools))
	}
	return err
}

func (p *peer) callsTool(ctx context.Context) error {
	return p.call(ctx, "echo", "hi", nil, map[string]any{"id": "c", "text": "hi"})
}

func (p *peer) hearsOfProgress(ctx context.Context) error {
	if err := p.call(ctx, "slow", "done", mcp.Meta{"progressToken": "p"}, map[string]any{"id": "p", "ms": 100}); err != nil {
		return err
	}
	for p.progress.Load() < 3 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("progress came %d times", p.progress.Load())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

func (p *peer) answers(ctx context.Context) error {
	return p.call(ctx, "ask", "hello Ada e", nil, map[string]any{"id": "e"})
}

func (p *peer) hearsLog(ctx context.Context) error {
	meta := mcp.Meta{}
	if p.version == newest {
		meta[mcp.MetaKeyLogLevel] = "info"
	} else if err := p.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
		return err
	}
	if err := p.call(ctx, "log", "logged", meta, map[string]any{"id": "g1"}); err != nil {
		return err
	}
	time.Sleep(200 * time.Millisecond) // a second line would come by then
	if lines := p.lines.Load(); lines != 1 {
		return fmt.Errorf("%d lines", lines)
	}
	return nil
}

// subscribed waits until the server has acknowledged one more request for notifications: the SDK returns when it has sent it.
func (p *peer) subscribed() error {
	if p.version == newest && !wait(p.acknowledged, caseTimeout) {
		return errors.New("not acknowledged")
	}
	return nil
}

func (p *peer) hearsOfList(ctx context.Context) error {
	if err := p.subscribed(); err != nil {
		return err
	}
	if err := p.call(ctx, "flip", "flipped", nil, map[string]any{"id": "l"}); err != nil {
		return err
	}
	if !wait(p.changed, caseTimeout) {
		return errors.New("no notification")
	}
	return nil
}

func (p *peer) hearsOfUpdate(ctx context.Context) error {
	if err := p.session.Subscribe(ctx, &mcp.SubscribeParams{URI: "test://r"}); err != nil {
		return err
	}
	if err := p.subscribed(); err != nil {
		return err
	}
	if err := p.call(ctx, "touch", "touched", nil, map[string]any{"id": "u"}); err != nil {
		return err
	}
	if !wait(p.updated, caseTimeout) {
		return errors.New("no notification")
	}
	return nil
}
