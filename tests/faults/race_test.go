//go:build race

package faults_test

import "runtime"

// With several processors, golang/go#78156 ends about every third run of these tests with the race detector: timers of a bubble
// run at once.
func init() { runtime.GOMAXPROCS(1) }
