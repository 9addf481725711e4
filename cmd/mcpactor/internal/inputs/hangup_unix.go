//go:build unix

package inputs

import (
	"os"
	"os/signal"
	"syscall"
)

// Hangups returns the channel of the SIGHUP signals that arrive until ignore is called. It
// keeps one signal while another is handled: more of them would load the same file.
func Hangups() (signals <-chan os.Signal, ignore func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}
