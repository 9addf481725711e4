//go:build !unix

package inputs

import "os"

// Hangups returns a nil channel: this system has no SIGHUP.
func Hangups() (signals <-chan os.Signal, ignore func()) { return nil, func() {} }
