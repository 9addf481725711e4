//go:build !linux

package lease

import "time"

// Clock returns the time since the process was started, by the clock of Go's timers, which nobody can set. On some
// systems it stands still while the machine is suspended.
func Clock() time.Duration { return time.Since(started) }

var started = time.Now()
