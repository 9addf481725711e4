//go:build !unix || solaris || aix || android

package resume

import "os"

// unlock does nothing: the lock that bbolt took here goes with the file.
func unlock(*os.File) {}
