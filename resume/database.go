package resume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// bucket is the name of the bucket with the entries, by key. It changes with the format
// of the entries: another program wrote a file without it.
var bucket = []byte("mcpactor sessions 1")

// inspect checks an existing file, and changes nothing. bbolt writes to some files as soon
// as it opens them for writing, also if they belong to another program.
func inspect(path string, wait time.Duration) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return reason(path, err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w (it is not a regular file)", errForeign)
	case info.Size() == 0:
		return nil
	}
	db, file, err := openDB(path, wait, true)
	if err != nil {
		return err
	}
	err = guarded(func() error {
		return db.View(func(tx *bbolt.Tx) error {
			// A read of a page beyond the end of the file is a fault.
			if info, err := file.Stat(); err != nil || info.Size() < tx.Size() {
				return ErrDamaged
			}
			if first, _ := tx.Cursor().First(); first != nil && tx.Bucket(bucket) == nil {
				return errForeign
			}
			return nil
		})
	})
	return errors.Join(err, release(db, file, errors.Is(err, ErrDamaged)))
}

// openDB opens a database, and creates the file unless readOnly is set. The file is
// returned for [release], which may have to close it without bbolt.
func openDB(path string, wait time.Duration, readOnly bool) (db *bbolt.DB, file *os.File, err error) {
	err = guarded(func() error {
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			ReadOnly:     readOnly,
			Timeout:      wait,
			NoStatistics: true,
			OpenFile: func(path string, flag int, mode fs.FileMode) (*os.File, error) {
				file, err = openPrivate(path, flag, mode)
				return file, err
			},
		})
		return err
	})
	if err == nil {
		return db, file, nil
	}
	if file != nil {
		_ = abandon(file) // bbolt has closed it, unless it panicked
	}
	return nil, nil, reason(path, err)
}

// release closes a database. After damage bbolt may hold its own locks forever, so only the
// file is closed, and its memory stays mapped.
func release(db *bbolt.DB, file *os.File, damaged bool) error {
	if damaged {
		return abandon(file)
	}
	return db.Close()
}

// abandon unlocks and closes the file of a database. Closing alone does not unlock a
// file that is mapped.
func abandon(file *os.File) error {
	unlock(file)
	return file.Close()
}

// openPrivate opens a file, and refuses one that others than its owner may use. It
// checks the open file and not its name, which may by now belong to another file.
func openPrivate(path string, flag int, mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag, mode)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		err = fmt.Errorf("%w: its mode is %04o, and session ids are secrets: run chmod 600 %s", errMode, info.Mode().Perm(), path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// reason returns the error of [Open] for an error of bbolt or of the system.
func reason(path string, err error) error {
	var failure *fs.PathError
	var errno syscall.Errno
	dir := filepath.Dir(path)
	switch {
	case errors.Is(err, errMode), errors.Is(err, ErrDamaged):
		return err
	case errors.Is(err, berrors.ErrTimeout):
		return ErrLocked
	case errors.Is(err, fs.ErrNotExist) && missing(dir):
		return fmt.Errorf("%w: the directory %s is missing: create it, with mode 0700", fs.ErrNotExist, dir)
	case errors.As(err, &failure): // the caller adds the path
		return failure.Err
	case errors.As(err, &errno):
		return err
	}
	return errForeign // any other error of bbolt is about the format
}

// missing reports whether there is no such file.
func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// guarded calls a function that uses the database, and turns its panics and memory
// faults into [ErrDamaged]: bbolt panics at a page that it does not understand, and
// reading a page that the disk does not return is a fault. The function must do nothing
// else, because its own panics would be hidden.
func guarded(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			err = ErrDamaged
		}
	}()
	return do()
}
