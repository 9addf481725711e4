//go:build unix && !solaris && !aix

package stdio

import (
	"fmt"
	"os"
	"syscall"
)

// lock locks a file for this process. It returns an error if another process has locked it.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// checkPrivate returns an error for a directory that another user may write to, or has made.
func checkPrivate(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user: choose another directory", dir)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("other users may access %s: change its mode to 0700, or choose another directory", dir)
	}
	return nil
}
