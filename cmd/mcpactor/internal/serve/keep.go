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

// keep sets what is kept between runs, in the cache folder of the user: lists, the key of the gateway, and for clients over HTTP, at
// each address apart, the clients and their sessions. The caller closes it after the gateway.
func (cmd *Serve) keep(p *cli.Program, plan *plan) (closeStore func() error, err error) {
	nothing := func() error { return nil }
	if cmd.NoCache {
		return nothing, nil
	}
	const warning = "%s: %v: set XDG_CACHE_HOME to a folder that can be written, or use --no-cache"
	const noClients, noLists = "clients are not kept, so that a restart ends them", "nothing is kept between runs"
	const noKey = "the key is not kept, so that ids of tasks end with this process"
	cache, err := os.UserCacheDir()
	lists := filepath.Join(cache, "mcpactor", "lists")
	if err == nil {
		err = os.MkdirAll(lists, 0o700)
	}
	if err != nil {
		p.Errorf(warning, noLists, err)
		return nothing, nil
	}
	os.Chmod(lists, 0o700) //nolint:errcheck // the file system may be read-only
	plan.gateway.Lists = &listfile.Store{Folder: lists}
	if plan.gateway.Key, err = readKey(filepath.Join(cache, "mcpactor", "key")); err != nil {
		p.Errorf(warning, noKey, err)
	}
	plan.sessions = &resume.Memory{} // they end with the client, and so with the process
	if cmd.Listen == "" || strings.HasSuffix(cmd.Listen, ":0") {
		return nothing, nil
	}
	folder := filepath.Join(cache, "mcpactor", "listen", visible.Name(cmd.Listen))
	if err = os.MkdirAll(folder, 0o700); err == nil {
		err = os.Chmod(folder, 0o700) // it may be there, for all to read
	}
	if err != nil {
		p.Errorf(warning, noClients, err)
		return nothing, nil
	}
	sessions, err := resume.Open(filepath.Join(folder, "sessions"), resume.Config{MaxAge: -1}) // the gateway deletes those of clients that are gone
	switch {
	case errors.Is(err, resume.ErrLocked):
		return nil, cli.Usagef("--listen: another mcpactor serve listens at %s", cmd.Listen)
	case err != nil:
		p.Errorf(warning, noClients, err)
		return nothing, nil
	}
	plan.sessions, plan.gateway.Clients = sessions, &gateway.ClientStore{Folder: filepath.Join(folder, "clients")}
	return sessions.Close, nil
}
