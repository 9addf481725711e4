package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// launched is a supervisor that runs as a configuration file says.
type launched struct {
	*config.File
	path   string
	system *actor.ActorSystem
	sup    *supervisor.Supervisor
	store  *resume.File // nil without one
}

// launch starts a supervisor. It is to be stopped.
func launch(path string, file *config.File, log io.Writer, level string) (*launched, error) {
	file.Supervisor.Logger = newLogger(log, level)
	l := &launched{File: file, path: path, system: newSystem(file.Supervisor.Logger)}
	warn(&l.Supervisor.Logger, file)
	run := file.Supervisor
	if file.Store != "" {
		store, err := resume.Open(file.Store, resume.Config{})
		if err != nil {
			return nil, wrongConfig(fmt.Errorf("%s: supervisor.store: %w", path, err))
		}
		l.store, run.Store = store, store
	}
	var err error
	if l.sup, err = supervisor.Start(l.system, run); err != nil {
		return nil, wrongConfig(errors.Join(fmt.Errorf("%s: %w", path, err), l.closeStore()))
	}
	return l, nil
}

// stop closes the sessions within a limit, and the store.
func (l *launched) stop(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return errors.Join(l.sup.Stop(ctx), l.closeStore())
}

func (l *launched) closeStore() error {
	if l.store == nil {
		return nil
	}
	return l.store.Close()
}

// toolset returns a toolset of the supervisor.
func (l *launched) toolset(cfg toolset.Config) (*toolset.Toolset, error) {
	return toolset.New(l.system, l.sup, cfg)
}

// wrongConfig is the error of a configuration file.
func wrongConfig(err error) error {
	return &usageError{fmt.Errorf("--config: %s", joined(err))}
}
