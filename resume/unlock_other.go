//go:build !unix || solaris || aix || android

package resume

import "os"

// unlock does nothing: closing the file releases the lock of bbolt on these systems.
func unlock(*os.File) {}
