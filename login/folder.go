package login

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gofrs/flock"
)

// Folder is a folder that keeps each login in a file, for all processes on a machine. Its value is the path; the folder is made if it
// does not exist. Only the user can read the files, which are not encrypted. Readers see the whole of a login, before or after it is
// saved. A claim is a lock on a file beside that of the login, and ends with the process. [Folder.Load] writes nothing.
type Folder string

var _ Store = Folder("")

// file returns the path of the file of an id.
func (f Folder) file(id string) string {
	return filepath.Join(string(f), fmt.Sprintf("%x", sha256.Sum256([]byte(id))))
}

// Load returns what is kept under an id, or nil.
func (f Folder) Load(ctx context.Context, id string) ([]byte, error) {
	return folderClaim{file: f.file(id)}.Load(ctx)
}

// lockEvery is how often a lock is tried.
const lockEvery = 20 * time.Millisecond

// Claim waits for the lock of the login until ctx ends.
func (f Folder) Claim(ctx context.Context, id string) (Claim, error) {
	if f == "" {
		return nil, errors.New("the path of the folder of logins is empty")
	}
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return nil, err
	}
	c := folderClaim{f.file(id), flock.New(f.file(id)+".refresh.lock", flock.SetPermissions(0o600))}
	if _, err := c.lock.TryLockContext(ctx, lockEvery); err != nil {
		return nil, fmt.Errorf("the lock of the login: %w", err)
	}
	return c, nil
}

// folderClaim is a claim of the login in a file.
type folderClaim struct {
	file string
	lock *flock.Flock // for this claim alone: others in this process wait for it, too
}

func (c folderClaim) Load(ctx context.Context) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(c.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

func (c folderClaim) Save(ctx context.Context, data []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if data != nil {
		return write(c.file, data)
	}
	for _, file := range []string{c.file, c.file + unfinished} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (c folderClaim) Release() { c.lock.Unlock() } //nolint:errcheck // it ends with the process

// unfinished ends the name of a file that is being written. If the process dies meanwhile, the next one that has the claim replaces or
// deletes it.
const unfinished = ".new"

// write writes a file that only the user can read.
func write(file string, data []byte) error {
	temporary, err := os.OpenFile(file+unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = temporary.Write(data)
	if err = errors.Join(err, temporary.Sync(), temporary.Close()); err == nil {
		err = replace(temporary.Name(), file)
	}
	if err != nil {
		os.Remove(temporary.Name()) //nolint:errcheck // the error is that of the file
	}
	return err
}

// replace renames a file. Windows replaces none that is being read.
func replace(from, to string) error {
	for try := 0; ; try++ {
		err := os.Rename(from, to)
		if err == nil || runtime.GOOS != "windows" || try == 50 {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}
