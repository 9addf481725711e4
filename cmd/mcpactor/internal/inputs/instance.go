package inputs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// Instance is a supervisor that was started from a configuration file.
type Instance struct {
	*config.File
	Running *supervisor.Supervisor
	Pins    *Pins // or nil

	store *resume.File // nil if the file names none
}

// Start starts a supervisor. path is that of the file, or empty if the configuration comes from none. The caller stops it.
func Start(path string, file *config.File, pins *Pins, log io.Writer, level string) (*Instance, error) {
	file.Supervisor.Logger = cli.NewLogger(log, level)
	i := &Instance{File: file, Pins: pins}
	LogWarnings(&i.Supervisor.Logger, file)
	cfg := file.Supervisor
	if file.Store != "" {
		store, err := resume.Open(file.Store, resume.Config{})
		if err != nil {
			return nil, configError(fmt.Errorf("%s: supervisor.store: %w", path, err))
		}
		i.store, cfg.Store = store, store
	}
	var err error
	if i.Running, err = supervisor.Start(actor.NewActorSystem(supervisor.WithSystemLogger(cfg.Logger)), cfg); err != nil {
		if path == "" {
			return nil, cli.Usagef("%s", OneLine(err))
		}
		return nil, configError(errors.Join(fmt.Errorf("%s: %w", path, err), i.closeStore()))
	}
	return i, nil
}

// Stop closes the sessions within a limit, and then the store.
func (i *Instance) Stop(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return errors.Join(i.Running.Stop(ctx), i.closeStore())
}

func (i *Instance) closeStore() error {
	if i.store == nil {
		return nil
	}
	return i.store.Close()
}

// Toolset returns a new toolset of the supervisor, with the tools that the lock file accepts.
func (i *Instance) Toolset(cfg toolset.Config) (*toolset.Toolset, error) {
	cfg.Policy = i.Pins.policy()
	return toolset.New(i.Running.System(), i.Running, cfg)
}

// List lists tools once.
func (i *Instance) List(ctx context.Context, cfg toolset.Config) (*toolset.Set, error) {
	tools, err := i.Toolset(cfg)
	if err != nil {
		return nil, err
	}
	defer tools.Close()
	return tools.Tools(ctx)
}
