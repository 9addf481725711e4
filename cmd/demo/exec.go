package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mcpactor/mcpactor/config"
)

// execCmd is the batch runner.
type execCmd struct {
	Config      string        `required:"" placeholder:"FILE" help:"Configuration file (JSON or YAML): an mcpServers object as MCP clients share it, and an optional supervisor object. SIGHUP reads it again."`
	Parallel    int           `default:"1" placeholder:"N" help:"How many requests of one server and scope run at once. 1 keeps them in order. Default: 1."`
	Events      bool          `help:"Print what happens to sessions, and what servers say unasked, as lines with an event."`
	LogLevel    string        `default:"warn" enum:"debug,info,warn,error" help:"Least level that is logged to stderr: debug, info, warn or error. Default: warn."`
	StopTimeout time.Duration `default:"20s" help:"How long closing the sessions may take at the end. Default: 20s."`
}

// Run reads requests until the end of input, or a signal.
func (cmd *execCmd) Run(std streams) error {
	if cmd.Parallel < 1 {
		return &usageError{fmt.Errorf("--parallel: %d is less than 1", cmd.Parallel)}
	}
	hangups, ignore := hangups()
	defer ignore() // not before the end: they would end us
	file, err := config.Load(cmd.Config)
	if err != nil {
		return wrongConfig(err)
	}
	l, err := launch(cmd.Config, file, std.err, cmd.LogLevel)
	if err != nil {
		return err
	}
	// A reader of our output that goes away must not end us before our
	// sessions are closed.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends us at once

	r := newRunner(l.sup.Client(), std.out, cmd.Parallel)
	r.tools = newToolsets(l.toolset, l.Tools)
	if cmd.Events {
		events := l.system.EventStream.Subscribe(r.events.publish)
		defer l.system.EventStream.Unsubscribe(events)
	}
	endReload := (&reloader{launched: l, tools: r.tools}).start(hangups)
	var left error
	r.close = func() {
		endReload()
		r.tools.forgetAll()
		left = l.stop(cmd.StopTimeout)
	}
	failed := r.run(ctx, std.in)
	switch {
	case left != nil:
		return left
	case failed:
		return errFailed
	}
	return nil
}
