package stdio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcpactor/mcpactor/internal/limits"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

const (
	// cleanupDefault is how long a cleanup may take by default.
	cleanupDefault = 10 * time.Second
	// cleanupTries is how often a cleanup is tried: a container that has just ended may be in a state in which its engine refuses to
	// remove.
	cleanupTries = 5
	// cleanupPause is the first pause between two tries. It doubles.
	cleanupPause = 50 * time.Millisecond
	// startLimit is how long a daemon may take to make a container: it continues when its client was killed.
	startLimit = 10 * time.Second
)

// cleanUp runs the cleanup of a server for a session, until it succeeds.
func cleanUp(ctx context.Context, config *mcpbridge.Server, session string) (err error) {
	limit := limits.Of(cmp.Or(config.Cleanup.Timeout, cleanupDefault))
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	pause := cleanupPause
	for range cleanupTries {
		if err = cleanUpOnce(ctx, config, session); err == nil {
			return nil
		}
		select {
		case <-time.After(pause):
			pause *= 2
		case <-ctx.Done():
			return fmt.Errorf("cleanup: was killed after %v: %w", limit, err)
		}
	}
	return fmt.Errorf("cleanup: %w", err)
}

// cleanUpOnce runs the command until ctx ends.
func cleanUpOnce(ctx context.Context, config *mcpbridge.Server, session string) error {
	command := *config
	command.Command, command.Args, command.Cleanup = config.Cleanup.Command, fillIn(config.Cleanup.Args, session), mcpbridge.Cleanup{}
	if checkDir(command.Dir) != nil { // it was removed, or is only there with another key
		command.Dir = ""
	}
	p, err := startProcess(&command, nil, nil)
	if err != nil {
		return err
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
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("%s: %s", detail, quote)
	}
	return nil
}

// recoverSessions runs the cleanup for the sessions of processes that have been killed, one after the other, until ctx ends, and
// once more for those that had just been started. It returns how many sessions it has ended, and why others are left.
func recoverSessions(ctx context.Context, config *mcpbridge.Server) (ended int, err error) {
	dir, err := recordsOf(config)
	if err != nil {
		return 0, err
	}
	entries, err := os.ReadDir(dir)
	errs := []error{err}
	end := func(c *cleanup) (ok bool) {
		if err := cleanUp(ctx, config, c.session); err != nil {
			errs = append(errs, err)
			c.record.Close()
			return false
		}
		return true
	}
	var young []*cleanup
	for _, entry := range entries {
		if ctx.Err() != nil {
			break
		}
		if !strings.HasPrefix(entry.Name(), sessionPrefix) {
			continue // it is no record
		}
		f, err := os.OpenFile(filepath.Join(dir, entry.Name()), os.O_RDWR, 0)
		if err != nil {
			continue // another process has ended the session
		}
		c := &cleanup{session: entry.Name(), record: f}
		switch {
		case lock(f) != nil || !isAt(f):
			f.Close()
		case !end(c):
		case c.untilSettled() > 0:
			young = append(young, c)
		default:
			c.forget()
			ended++
		}
	}
	for _, c := range young {
		select {
		case <-time.After(c.untilSettled()):
			if end(c) {
				c.forget()
				ended++
			}
		case <-ctx.Done():
			c.record.Close()
		}
	}
	return ended, errors.Join(errs...)
}

// untilSettled returns for how long a daemon may still be making what the session has started.
func (c *cleanup) untilSettled() time.Duration {
	info, err := c.record.Stat()
	if err != nil {
		return 0
	}
	return min(startLimit, time.Until(info.ModTime().Add(startLimit)))
}
