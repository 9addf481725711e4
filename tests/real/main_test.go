//go:build real

package real

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// throttle is Proto.Actor's: it lives for a second after a dead letter.
var throttle = goleak.IgnoreTopFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1")

// Processes whose parent has ended become children of this one, so that none
// gets out of sight.
func TestMain(m *testing.M) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "cannot watch the processes:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, throttle)
}
