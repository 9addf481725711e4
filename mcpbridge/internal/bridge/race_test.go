//go:build race

package bridge

import "runtime"

// With several processors, golang/go#78156 can end a run of these tests with the race detector: the SDK waits for a timer that is
// already due before it opens a stream, and two goroutines of a bubble may do so at once.
func init() { runtime.GOMAXPROCS(1) }
