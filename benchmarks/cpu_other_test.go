//go:build !unix

package benchmarks

import "time"

// cpuTime returns 0: the processor time of this process is unknown here.
func cpuTime() time.Duration { return 0 }
