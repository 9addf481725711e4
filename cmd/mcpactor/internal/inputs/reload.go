package inputs

import (
	"context"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// Reloader loads a configuration file again while its servers run.
type Reloader struct {
	Loader *Loader
	Path   string
	File   *config.File // the one that is in effect
	Log    *zerolog.Logger

	seen os.FileInfo // before File was loaded
}

// NewReloader loads a file for the first time, as [Loader.First] does.
func NewReloader(loader *Loader, path string) (*Reloader, error) {
	seen := look(path)
	file, err := loader.First(path)
	loader.terminal = nil // a reload asks nothing
	return &Reloader{Loader: loader, Path: path, File: file, seen: seen}, err
}

// endTimeout bounds the wait for a reload at the end: the file may be a pipe that nobody writes to.
const endTimeout = 2 * time.Second

// Run applies the file after each signal and message, and, if it is watched, after each change, one after the other, until end is called. apply is
// not called for an invalid file.
func (r *Reloader) Run(signals <-chan os.Signal, asked <-chan struct{}, watched bool, apply func(context.Context, *config.File) (*messages.Closed, error)) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	changes, ended := make(chan struct{}), make(chan struct{})
	if watched {
		go watch(ctx, r.Path, r.seen, changes)
	}
	go func() {
		defer close(ended)
		for {
			select {
			case <-signals:
			case <-asked:
			case <-changes:
			case <-ctx.Done():
				return
			}
			r.reload(ctx, apply)
		}
	}()
	return func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(endTimeout):
		}
	}
}

// reload loads the file once, and applies it.
func (r *Reloader) reload(ctx context.Context, apply func(context.Context, *config.File) (*messages.Closed, error)) {
	file := r.load()
	if file == nil {
		return
	}
	closed, err := apply(ctx, file)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		r.Log.Error().Str("err", OneLine(err)).Msg("configuration could not be reloaded")
		return
	}
	r.File = file
	for _, left := range closed.Left {
		r.Log.Warn().Str("server", left.Key.Server).Str("scope", left.Key.Scope).Str("err", left.Reason).Msg("session could not be closed")
	}
	r.Log.Info().Int("servers", len(file.Supervisor.Servers)).Int("sessions", closed.Sessions).Msg("configuration was reloaded")
}

// load loads the file. It returns nil if nothing in it has changed: a client may often write its own file. It returns nil as well, and logs
// why, if the file is invalid, or has an error in the entry of a server that runs: the server's sessions would be closed.
func (r *Reloader) load() *config.File {
	file, err := r.Loader.Load(r.Path)
	if err != nil {
		r.Log.Error().Str("err", OneLine(err)).Msg("configuration was invalid, nothing was reloaded")
		return nil
	}
	for _, srv := range r.File.Supervisor.Servers {
		if lacks := LeftOut(file, srv.Name); len(lacks) > 0 {
			r.Log.Error().Str("err", lacks[0]).Msg("configuration was invalid, nothing was reloaded")
			return nil
		}
	}
	if r.isInEffect(file) {
		return nil
	}
	LogWarnings(r.Log, file)
	if !reflect.DeepEqual(settingsOf(file), settingsOf(r.File)) {
		r.Log.Warn().Str("file", r.Path).Msg("changes of the supervisor object were ignored: restart the program to apply them")
	}
	return file
}

// isInEffect reports whether a file says what the one in effect says.
func (r *Reloader) isInEffect(file *config.File) bool {
	before, now := r.File.Supervisor.Servers, file.Supervisor.Servers
	if len(before) != len(now) {
		return false
	}
	for i := range now {
		if !now[i].Same(&before[i]) || !reflect.DeepEqual(now[i].Limits, before[i].Limits) {
			return false
		}
	}
	return reflect.DeepEqual(file.Tools, r.File.Tools) && reflect.DeepEqual(file.Clients, r.File.Clients) && reflect.DeepEqual(settingsOf(file), settingsOf(r.File)) &&
		slices.EqualFunc(file.Warnings, r.File.Warnings, func(one, two config.Warning) bool { return one.Field == two.Field && one.Text == two.Text })
}

// settings is the content of a configuration file except for the servers and their tools.
type settings struct {
	supervisor.Config
	store string
}

func settingsOf(file *config.File) settings {
	cfg := file.Supervisor
	cfg.Servers, cfg.Logger = nil, zerolog.Logger{}
	return settings{cfg, file.Store}
}

// watchEvery is the time between two looks at a file. Its notifications are not used: there are none for a file that is on a network
// share, or mounted into a container.
const watchEvery = 2 * time.Second

// watch sends each change of a file since it was known to changes, until ctx ends: once the file has been the same for a while, so that it is not read while
// it is written.
func watch(ctx context.Context, path string, known os.FileInfo, changes chan<- struct{}) {
	var last os.FileInfo
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := look(path)
		if isSame(now, last) && !isSame(now, known) {
			known = now
			select {
			case changes <- struct{}{}:
			case <-ctx.Done():
			}
		}
		last = now
	}
}

// look returns what is known of a file, or nil if it cannot be read now, as while an editor replaces it, or is a pipe.
func look(path string) os.FileInfo {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return info
}

// isSame reports whether a file has not changed between two looks.
func isSame(one, other os.FileInfo) bool {
	return one != nil && other != nil && os.SameFile(one, other) && one.Size() == other.Size() && one.ModTime().Equal(other.ModTime())
}
