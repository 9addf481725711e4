package exec

import (
	"context"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// reloader applies the servers of a changed configuration file to a running supervisor.
type reloader struct {
	*inputs.Instance
	loader   *inputs.Loader
	toolsets *toolsets
}

// start reloads the file for each signal, one after the other, until end is called.
func (r *reloader) start(signals <-chan os.Signal) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-signals:
				r.reload(ctx)
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(writeTimeout): // the file may be a pipe that nobody writes to
		}
	}
}

// reload loads the file once. An invalid file changes nothing, and neither does one with an error in the entry of a server that
// runs: its sessions would be closed.
func (r *reloader) reload(ctx context.Context) {
	log := &r.Supervisor.Logger
	file, err := r.loader.Load(r.Path)
	if err != nil {
		log.Error().Str("err", inputs.OneLine(err)).Msg("configuration was invalid, nothing was reloaded")
		return
	}
	for _, warning := range file.Warnings {
		if slices.ContainsFunc(r.Supervisor.Servers, func(srv mcpbridge.Server) bool { return srv.Name == warning.Server }) {
			log.Error().Str("err", inputs.ForUser(warning.String())).Msg("configuration was invalid, nothing was reloaded")
			return
		}
	}
	inputs.LogWarnings(log, file)
	if !reflect.DeepEqual(settingsOf(file), settingsOf(r.File)) {
		log.Warn().Str("file", r.Path).Msg("changes of the supervisor object were ignored: restart the program to apply them")
	}
	closed, err := r.Running.Reload(ctx, file.Supervisor.Servers)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		log.Error().Str("err", inputs.OneLine(err)).Msg("configuration could not be reloaded")
		return
	}
	r.Supervisor.Servers = file.Supervisor.Servers
	r.toolsets.replace(file.Tools)
	for _, left := range closed.Left {
		log.Warn().Str("server", left.Key.Server).Str("scope", left.Key.Scope).Str("err", left.Reason).Msg("session could not be closed")
	}
	log.Info().Int("servers", len(file.Supervisor.Servers)).Int("sessions", closed.Sessions).Msg("configuration was reloaded")
}
