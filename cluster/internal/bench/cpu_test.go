//go:build unix

package bench

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime returns the CPU time that the process has used: that of all members.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// countCPU reports the CPU time of the operations between this call and that of the function that it
// returns.
func countCPU(b *testing.B) (report func()) {
	began := cpuTime()
	return func() { b.ReportMetric(float64(cpuTime()-began)/float64(b.N), "cpu-ns/op") }
}
