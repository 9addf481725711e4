package batch

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

// instance is a supervisor that was started from a configuration file.
type instance struct {
	*config.File
	path   string
	system *actor.ActorSystem
	sup    *supervisor.Supervisor
	store  *resume.File // nil if the file names none
}

// start starts a supervisor. The caller stops it.
func start(path string, file *config.File, log io.Writer, level string) (*instance, error) {
	file.Supervisor.Logger = cli.NewLogger(log, level)
	i := &instance{File: file, path: path, system: actor.NewActorSystem(supervisor.WithSystemLogger(file.Supervisor.Logger))}
	logWarnings(&i.Supervisor.Logger, file)
	cfg := file.Supervisor
	if file.Store != "" {
		store, err := resume.Open(file.Store, resume.Config{})
		if err != nil {
			return nil, configError(fmt.Errorf("%s: supervisor.store: %w", path, err))
		}
		i.store, cfg.Store = store, store
	}
	var err error
	if i.sup, err = supervisor.Start(i.system, cfg); err != nil {
		return nil, configError(errors.Join(fmt.Errorf("%s: %w", path, err), i.closeStore()))
	}
	return i, nil
}

// stop closes the sessions within a limit, and then the store.
func (i *instance) stop(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return errors.Join(i.sup.Stop(ctx), i.closeStore())
}

func (i *instance) closeStore() error {
	if i.store == nil {
		return nil
	}
	return i.store.Close()
}

// toolset returns a new toolset of the supervisor.
func (i *instance) toolset(cfg toolset.Config) (*toolset.Toolset, error) {
	return toolset.New(i.system, i.sup, cfg)
}

// list lists tools once.
func (i *instance) list(ctx context.Context, cfg toolset.Config) (*toolset.Set, error) {
	tools, err := i.toolset(cfg)
	if err != nil {
		return nil, err
	}
	defer tools.Close()
	return tools.Tools(ctx)
}

// configError returns the error of an invalid configuration file.
func configError(err error) error { return cli.Usagef("--config: %s", oneLine(err)) }
