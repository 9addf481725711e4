//go:build unix

package exec

import (
	"os"
	"os/signal"
	"syscall"
)

// hangups returns the channel of the SIGHUP signals that arrive until ignore is called. It
// keeps one signal while another is handled: more of them would load the same file.
func hangups() (signals <-chan os.Signal, ignore func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}
