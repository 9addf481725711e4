package stdio

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

const (
	// lastWait is how long wait waits at least.
	lastWait = time.Second
	// sessionPrefix begins the names of sessions.
	sessionPrefix = "mcpactor-"
)

// cleanup is the [mcpbridge.Cleanup] of one session. A nil cleanup does nothing.
//
// The name of the session is recorded by a file, which is locked until the cleanup has run or this process has ended, and is
// removed when the cleanup has succeeded. A file that is not locked is of a session that was left: see [Server.Recover].
//
// All methods may be called from any goroutine.
type cleanup struct {
	session string
	record  *os.File
	run     func(session string) error // runs the command

	mu    sync.Mutex
	tried chan struct{} // closed when the current attempt has ended; nil before the first one
	err   error         // of the last attempt that has ended
	over  bool          // an attempt has succeeded
}

// newCleanup returns the cleanup of a new session, or nil if the server has none. run runs its command.
func newCleanup(config *mcpbridge.Server, run func(session string) error) (*cleanup, error) {
	if config.Cleanup.Command == "" {
		return nil, nil
	}
	dir, err := recordsOf(config)
	if err != nil {
		return nil, err
	}
	for range 10 { // another process may take the file for one that was left, before it is locked
		session := sessionPrefix + strings.ToLower(rand.Text())
		f, err1 := os.OpenFile(filepath.Join(dir, session), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err1 != nil {
			return nil, fmt.Errorf("cleanup.records: %w", err1)
		}
		if err = lock(f); err == nil && isAt(f) {
			return &cleanup{session: session, record: f, run: run}, nil
		}
		f.Close()
	}
	return nil, fmt.Errorf("cleanup.records: cannot lock a file: %w", err)
}

// recordsOf returns the directory for the records of a server. Servers with the same cleanup share it.
func recordsOf(config *mcpbridge.Server) (string, error) {
	c := &config.Cleanup
	dir := c.Records
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("cleanup.records: there is no directory for the user: %w: set one", err)
		}
		dir = filepath.Join(cache, "mcpactor", "sessions")
	}
	text, _ := json.Marshal([]any{c.Command, c.Args}) // texts can be marshalled
	sum := sha256.Sum256(text)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cleanup.records: %w", err)
	}
	if err := checkPrivate(dir); err != nil {
		return "", fmt.Errorf("cleanup.records: %w", err)
	}
	dir = filepath.Join(dir, hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cleanup.records: %w", err)
	}
	return dir, nil
}

// isAt reports whether a file is still where it was opened.
func isAt(f *os.File) bool {
	one, err1 := f.Stat()
	two, err2 := os.Stat(f.Name())
	return err1 == nil && err2 == nil && os.SameFile(one, two)
}

// fill returns arguments with the name of the session in place of its mark.
func (c *cleanup) fill(args []string) []string {
	if c == nil {
		return args
	}
	return fillIn(args, c.session)
}

func fillIn(args []string, session string) []string {
	filled := make([]string, len(args))
	for i, arg := range args {
		filled[i] = strings.ReplaceAll(arg, mcpbridge.SessionMark, session)
	}
	return filled
}

// begin begins an attempt, unless one runs or has succeeded.
func (c *cleanup) begin() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.tried != nil && !isClosed(c.tried) {
		return
	}
	tried := make(chan struct{})
	c.tried = tried
	go func() {
		defer close(tried)
		err := c.run(c.session)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.err, c.over = err, err == nil; c.over {
			c.forget()
		} else {
			c.record.Close() // the next start tries it, also in this process
		}
	}()
}

// wait waits for the attempt that runs, and begins another one if the last one has failed. If ctx has ended, it waits for
// lastWait all the same.
func (c *cleanup) wait(ctx context.Context) error {
	if c == nil {
		return nil
	}
	c.begin()
	c.mu.Lock()
	tried := c.tried
	c.mu.Unlock()
	select {
	case <-tried:
	case <-ctx.Done():
		select {
		case <-tried:
		case <-time.After(lastWait):
			return errors.New("the cleanup of the session has not ended yet")
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// discard forgets a session that was not started.
func (c *cleanup) discard() {
	if c != nil {
		c.forget()
	}
}

// forget removes the record. It closes the file first, as Windows demands. Another process may take the
// file for one that was left meanwhile, and run a cleanup that has nothing to do.
func (c *cleanup) forget() {
	c.record.Close()
	os.Remove(c.record.Name()) //nolint:errcheck // the cleanup runs once more at the next start, then
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
