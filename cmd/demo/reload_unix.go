//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// hangups returns the signals that ask for a reload, until they are ignored. One waits
// while another is served: more would read the same file.
func hangups() (signals <-chan os.Signal, ignore func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}
