//go:build !unix

package exec

import "os"

// hangups returns a nil channel: this system has no SIGHUP.
func hangups() (signals <-chan os.Signal, ignore func()) { return nil, func() {} }
