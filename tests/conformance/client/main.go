// Client is what the conformance suite starts, once for each of its scenarios. An
// agent does what the scenario is about: it sends commands to a supervisor, of which
// the suite's server is the only server.
//
// The program mcpactor, in the same folder, does it where a person has to log in for a token that is bound to a key.
//
// With the argument "server" or "tools", the client of the SDK does it instead, over that
// transport of a gateway.
//
// The server's URL is the last argument. The suite says in the environment which
// scenario it is, and what there is to know about it, as JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/gateway"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
)

const (
	// playTimeout bounds a scenario: the suite ends us after 30 s.
	playTimeout = 25 * time.Second
	// stopTimeout bounds the end of the session.
	stopTimeout = 3 * time.Second
)

func main() {
	run := run
	if filepath.Base(os.Args[0]) == browser {
		run = browse
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "conformance client:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) < 2 {
		return errors.New("the URL of the server is missing")
	}
	name := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	var known knowledge
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &known); err != nil {
			return fmt.Errorf("the scenario's context: %w", err)
		}
	}
	s, err := find(name, known)
	if err != nil {
		return err
	}
	if s.program {
		return byProgram(os.Args[len(os.Args)-1])
	}
	way := ""
	if len(os.Args) > 2 {
		way = os.Args[1]
	}
	return play(os.Args[len(os.Args)-1], way, s)
}

// play plays a scenario on the server at url: an agent does, or the client of the SDK over a transport of a gateway, if way names one.
func play(url, way string, s scenario) (err error) {
	srv := mcpbridge.Server{Name: server, URL: url}
	if s.login != nil {
		handler, err := s.login()
		if err != nil {
			return err
		}
		srv.Auth = mcpbridge.OAuth(handler)
	}
	system := actor.NewActorSystem()
	cfg := supervisor.Config{Servers: []mcpbridge.Server{srv}, Logger: zerolog.New(os.Stderr).Level(zerolog.InfoLevel)}
	if way != "" {
		cfg.Servers = gateway.Prepare(cfg.Servers...)
	} else {
		cfg.Handler = system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &user{s.form} }))
		cfg.Capabilities = &mcp.ClientCapabilities{
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}},
			Sampling:    &mcp.SamplingCapabilities{},
			RootsV2:     &mcp.RootCapabilities{},
		}
	}
	sup, err := supervisor.Start(system, cfg)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		err = errors.Join(err, sup.Stop(ctx))
	}()

	ctx, cancel := context.WithTimeoutCause(context.Background(), playTimeout, errors.New("the scenario has not come to its end in time"))
	defer cancel()
	if way != "" {
		return connected(ctx, sup, way, s)
	}
	done := make(chan error, 1)
	system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
		return &agent{sessions: sup.PID(), scenario: s, done: done}
	}))
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
