package serve

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/gateway"
	"github.com/mcpactor/mcpactor/internal/listfile"
	"github.com/mcpactor/mcpactor/internal/visible"
	"github.com/mcpactor/mcpactor/resume"
)

// keep sets what is kept between runs, in the cache folder of the user: lists, and for clients over HTTP, at each address apart, the
// clients and their sessions. The caller closes it after the gateway.
func (cmd *Serve) keep(p *cli.Program, plan *plan) (closeStore func() error, err error) {
	nothing := func() error { return nil }
	if cmd.NoCache {
		return nothing, nil
	}
	const warning = "clients are not kept, so that a restart ends them: %v"
	cache, err := os.UserCacheDir()
	if err != nil {
		if cmd.Listen != "" {
			p.Errorf(warning, err)
		}
		return nothing, nil
	}
	lists := filepath.Join(cache, "mcpactor", "lists")
	os.Chmod(lists, 0o700) //nolint:errcheck // it may not be there yet
	plan.gateway.Lists = &listfile.Store{Folder: lists}
	plan.sessions = &resume.Memory{} // they end with the client, and so with the process
	if cmd.Listen == "" || strings.HasSuffix(cmd.Listen, ":0") {
		return nothing, nil
	}
	folder := filepath.Join(cache, "mcpactor", "listen", visible.Name(cmd.Listen))
	if err := errors.Join(os.MkdirAll(folder, 0o700), os.Chmod(folder, 0o700)); err != nil { // it may be there, for all to read
		p.Errorf(warning, err)
		return nothing, nil
	}
	sessions, err := resume.Open(filepath.Join(folder, "sessions"), resume.Config{MaxAge: -1}) // the gateway deletes those of clients that are gone
	switch {
	case errors.Is(err, resume.ErrLocked):
		return nil, cli.Usagef("--listen: another mcpactor serve listens at %s", cmd.Listen)
	case err != nil:
		p.Errorf(warning, err)
		return nothing, nil
	}
	plan.sessions, plan.gateway.Clients = sessions, &gateway.ClientStore{Folder: filepath.Join(folder, "clients")}
	return sessions.Close, nil
}
