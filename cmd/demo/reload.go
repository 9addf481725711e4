package main

import (
	"context"
	"os"
	"reflect"
	"sync"

	"github.com/mcpactor/mcpactor/config"
)

// reloader gives the servers of the configuration file, as it is now, to a supervisor
// that runs.
type reloader struct {
	*launched
	tools *toolsets
}

// start reloads at each signal, one after the other, until end is called.
func (r *reloader) start(signals <-chan os.Signal) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-signals:
				r.reload(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		within(lastWrite, running.Wait) // reading the file may take for ever, if it is a pipe
	}
}

// reload reads the file once. One that is wrong changes nothing.
func (r *reloader) reload(ctx context.Context) {
	log := &r.Supervisor.Logger
	file, err := config.Load(r.path)
	if err != nil {
		log.Error().Str("err", joined(err)).Msg("configuration was wrong, nothing was reloaded")
		return
	}
	warn(log, file)
	if !reflect.DeepEqual(settingsOf(file), settingsOf(r.File)) {
		log.Warn().Str("file", r.path).Msg("changes of the supervisor object were ignored: restart for them")
	}
	closed, err := r.sup.Reload(ctx, file.Supervisor.Servers)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		log.Error().Str("err", joined(err)).Msg("configuration could not be reloaded")
		return
	}
	r.tools.replace(file.Tools)
	for _, left := range closed.Left {
		log.Warn().Str("server", left.Key.Server).Str("scope", left.Key.Scope).Str("err", left.Reason).Msg("session could not be closed")
	}
	log.Info().Int("servers", len(file.Supervisor.Servers)).Int("sessions", closed.Sessions).Msg("configuration was reloaded")
}
