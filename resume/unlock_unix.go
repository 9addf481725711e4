//go:build unix && !solaris && !aix && !android

package resume

import (
	"os"
	"syscall"
)

// unlock releases the lock of bbolt, which may already be released.
func unlock(file *os.File) {
	syscall.Flock(int(file.Fd()), syscall.LOCK_UN) //nolint:errcheck // see above
}
