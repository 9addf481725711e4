//go:build linux

package cluster_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var (
	full = flag.Bool("full", false, "run all scenarios with each provider, with and without a shared store, and for longer")
	cuts = flag.Int("cuts", 0, "how many cases of TestEveryCut are run, side by side as -parallel allows; -1 is all. It needs root and iproute2")
	logs = flag.String("logs", "", "a directory that keeps the logs of all processes")
)

// programs is the directory of the programs that the scenarios start.
var programs string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

// run builds the programs, and runs the tests.
func run(m *testing.M) (status int) {
	dir, err := os.MkdirTemp("", "cluster")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programs = dir
	build := exec.Command("go", "build", "-o", dir, "./cmd/member", "./cmd/etcd")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	if status = m.Run(); status == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return status
}

// program returns the path of a program.
func program(name string) string { return filepath.Join(programs, name) }

// scaled returns a time of the quick form, or of the full form.
func scaled(quick, whole time.Duration) time.Duration {
	if *full {
		return whole
	}
	return quick
}
