//go:build !linux

package stdio

import "os"

// pending returns 0: how much is in a pipe is unknown here.
func pending(*os.File) int { return 0 }

// unread closes a pipe, and returns -1: how much is left in it is unknown here.
func unread(f *os.File) int64 {
	f.Close()
	return -1
}
