//go:build unix && !linux

package stdio

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

var starters = []string{"starter"}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func ownerAttr() *syscall.SysProcAttr { return nil }

// leftOf finds the children of [forking] by their arguments.
func leftOf(t *testing.T, program *exec.Cmd) (left []int) {
	t.Helper()
	out, _ := exec.Command("pgrep", "-f", fmt.Sprintf("sleep 60%d", program.Process.Pid)).Output() // it fails if there is none
	for pid := range strings.FieldsSeq(string(out)) {
		n, err := strconv.Atoi(pid)
		require.NoError(t, err)
		left = append(left, n)
	}
	return left
}

func withoutCgroups(*testing.T) {}
