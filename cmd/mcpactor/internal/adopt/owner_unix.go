//go:build unix

package adopt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a new file the owner and the group of another one.
func keepOwner(f *os.File, like fs.FileInfo) error {
	its, is := like.Sys().(*syscall.Stat_t)
	if !is {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	own, is := info.Sys().(*syscall.Stat_t)
	if is && own.Uid == its.Uid && own.Gid == its.Gid {
		return nil
	}
	err = f.Chown(int(its.Uid), int(its.Gid))
	switch {
	case !errors.Is(err, fs.ErrPermission):
		return err
	case is && own.Uid == its.Uid: // the user is not in this group any more: nothing is for the user's own one
		return f.Chmod(like.Mode().Perm() &^ 0o070)
	}
	return fmt.Errorf("%s belongs to another user: run the command as this user", like.Name())
}
