//go:build eras

package eras

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	buildTimeout = 5 * time.Minute
	rowTimeout   = 4 * time.Minute
)

var only = flag.String("rows", "", "run only the rows whose names contain this")

// outcome matches what the driver says of a case: the verdict, the row, the case, and words.
var outcome = regexp.MustCompile(`(?m)^(PASS|FAIL|SKIP) (\S+) (\S+?)(?:: (.*))?$`)

// All that the driver tries holds in each combination of an old or new client with an old or new server, and no process is left.
func TestErasUnderstandEachOther(t *testing.T) {
	require.FileExists(t, filepath.Join("node_modules", ".package-lock.json"), "run tests/eras/install")
	programs := t.TempDir()
	mcpactor, gopeer := filepath.Join(programs, "mcpactor"), filepath.Join(programs, "gopeer")
	ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	for program, pkg := range map[string]string{mcpactor: "../../cmd/mcpactor", gopeer: "./internal/gopeer"} {
		said, err := exec.CommandContext(ctx, "go", "build", "-o", program, pkg).CombinedOutput()
		require.NoError(t, err, "%s", said)
	}
	rows, said, err := drive(t, "--rows")
	require.NoError(t, err, "%s", said)
	for row := range strings.FieldsSeq(rows) {
		if !strings.Contains(row, *only) {
			continue
		}
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			cases, said, err := drive(t, mcpactor, gopeer, row)
			found := outcome.FindAllStringSubmatch(cases, -1)
			for _, c := range found {
				t.Run(c[3], func(t *testing.T) {
					switch words := c[4]; c[1] {
					case "FAIL":
						t.Error(words)
					case "SKIP":
						t.Skip(words)
					default:
						t.Log(words)
					}
				})
			}
			require.NotEmpty(t, found, "%s", said)
			if err != nil {
				t.Errorf("the driver: %v\n%s", err, said)
			}
		})
	}
}

// drive runs the driver, in a process group of its own. It returns the two outputs.
func drive(t *testing.T, args ...string) (out, said string, err error) {
	t.Helper()
	folder, err := os.MkdirTemp("", "eras")
	require.NoError(t, err)
	defer os.RemoveAll(folder)
	ctx, cancel := context.WithTimeout(t.Context(), rowTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{filepath.Join("driver", "drive.mjs")}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "TMPDIR="+folder)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}
