package lease

import (
	"time"

	"golang.org/x/sys/unix"
)

// Clock returns the time since the machine was started, with the time in which it was suspended. Nobody can set it.
func Clock() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return time.Since(started)
	}
	return time.Duration(now.Nano())
}

var started = time.Now()
