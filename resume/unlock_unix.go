//go:build unix && !solaris && !aix && !android

package resume

import (
	"os"
	"syscall"
)

// unlock takes back the lock that bbolt took. It may be gone already.
func unlock(file *os.File) {
	syscall.Flock(int(file.Fd()), syscall.LOCK_UN) //nolint:errcheck // see above
}
