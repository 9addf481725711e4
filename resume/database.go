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

// bucket has the entries, by key. Its name changes with their format: a file
// without it was written by something else.
var bucket = []byte("mcpactor sessions 1")

// inspect reads a file that is there, and changes nothing: bbolt writes to some
// files as soon as they are opened for writing, also when they are not ours.
func inspect(path string, wait time.Duration) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return reason(path, err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w (this is no regular file)", ErrForeign)
	case info.Size() == 0:
		return nil
	}
	db, file, err := openDB(path, wait, true)
	if err != nil {
		return err
	}
	err = guarded(func() error {
		return db.View(func(tx *bbolt.Tx) error {
			// A page that is beyond the end is a fault for whoever reads it.
			if info, err := file.Stat(); err != nil || info.Size() < tx.Size() {
				return ErrDamaged
			}
			if first, _ := tx.Cursor().First(); first != nil && tx.Bucket(bucket) == nil {
				return ErrForeign
			}
			return nil
		})
	})
	return errors.Join(err, release(db, file, errors.Is(err, ErrDamaged)))
}

// openDB opens a database, and creates the file when it may write. The file is
// for closing what bbolt does not close.
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
		_ = abandon(file) // bbolt closed it, if it did not panic
	}
	return nil, nil, reason(path, err)
}

// release closes a database. Where there was damage bbolt may hold its own locks
// for ever, so only the file is closed, and its memory stays mapped.
func release(db *bbolt.DB, file *os.File, damaged bool) error {
	if damaged {
		return abandon(file)
	}
	return db.Close()
}

// abandon unlocks and closes the file of a database. A file that is mapped stays
// locked when it is only closed.
func abandon(file *os.File) error {
	unlock(file)
	return file.Close()
}

// openPrivate opens a file, and refuses one that others than its owner may use.
// It looks at what it opened: a file of that name may be another by now.
func openPrivate(path string, flag int, mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag, mode)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		err = fmt.Errorf("%w: its mode is %04o, and session ids are secrets: run chmod 600 %s", ErrMode, info.Mode().Perm(), path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// reason says why a file was not opened.
func reason(path string, err error) error {
	var failure *fs.PathError
	var errno syscall.Errno
	dir := filepath.Dir(path)
	switch {
	case errors.Is(err, ErrMode), errors.Is(err, ErrDamaged):
		return err
	case errors.Is(err, berrors.ErrTimeout):
		return ErrLocked
	case errors.Is(err, fs.ErrNotExist) && missing(dir):
		return fmt.Errorf("%w: the directory %s is missing: create it, with mode 0700", fs.ErrNotExist, dir)
	case errors.As(err, &failure): // the path is said already
		return failure.Err
	case errors.As(err, &errno):
		return err
	}
	return ErrForeign // all else that bbolt says is that it does not understand it
}

// missing tells whether there is no such file.
func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// guarded calls what uses the database. It makes errors of the panics with which
// bbolt answers pages that it does not understand, and of the fault that a page
// is which the disk does not give: a file that is damaged must not end our
// process. Nothing else may be done inside, or its panics are hidden.
func guarded(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			err = ErrDamaged
		}
	}()
	return do()
}
