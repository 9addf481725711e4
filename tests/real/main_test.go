//go:build real

package real

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/mcpactor/mcpactor/internal/leaktest"
)

// TestMain makes this process the reaper of its descendants, so that a process whose parent
// has ended stays visible as a child.
func TestMain(m *testing.M) {
	if how := os.Getenv(startVar); how != "" {
		runStarting(how)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "cannot watch the processes:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, append(leaktest.Throttle, goleak.Cleanup(func(code int) {
		os.RemoveAll(programs)
		os.Exit(code)
	}))...)
}
