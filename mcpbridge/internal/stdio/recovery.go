package stdio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// cleanupDefault is how long a cleanup may take by default.
const cleanupDefault = 10 * time.Second

// cleanUp runs the cleanup of a server once, for a session.
func cleanUp(ctx context.Context, config *mcpbridge.Server, session string) error {
	limit := cmp.Or(config.Cleanup.Timeout, cleanupDefault)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	command := *config
	command.Command, command.Args, command.Cleanup = config.Cleanup.Command, fillIn(config.Cleanup.Args, session), mcpbridge.Cleanup{}
	p, err := startProcess(&command, nil, nil)
	if err != nil {
		return fmt.Errorf("cleanup: %w", err)
	}
	p.stdin.Close()
	go io.Copy(io.Discard, p) //nolint:errcheck // it ends with the process
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill()
		<-p.done
	}
	detail, quote := p.describeEnd()
	p.closePipes()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("cleanup: was killed after %v: %s", limit, quote)
	case !p.cmd.ProcessState.Success():
		return fmt.Errorf("cleanup: %s: %s", detail, quote)
	}
	return nil
}

// recoverSessions runs the cleanup for the sessions of processes that have been killed, one after the other, until ctx ends. It
// returns how many sessions it has ended, and why others are left.
func recoverSessions(ctx context.Context, config *mcpbridge.Server) (ended int, err error) {
	dir, err := recordsOf(config)
	if err != nil {
		return 0, err
	}
	entries, err := os.ReadDir(dir)
	var errs []error
	for _, entry := range entries {
		if ctx.Err() != nil {
			break
		}
		f, err := os.OpenFile(filepath.Join(dir, entry.Name()), os.O_RDWR, 0)
		if err != nil {
			continue // another process has ended the session
		}
		c := &cleanup{session: entry.Name(), record: f}
		if lock(f) != nil || !isAt(f) {
			f.Close()
			continue
		}
		if err := cleanUp(ctx, config, c.session); err != nil {
			errs = append(errs, err)
			f.Close()
			continue
		}
		c.forget()
		ended++
	}
	return ended, errors.Join(append(errs, err)...)
}
