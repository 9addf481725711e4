//go:build conformance

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	// suiteTimeout bounds the run of a suite, whose scenarios run at the same time.
	suiteTimeout = 2 * time.Minute
	// timed is the scenario that measures time. If it fails while the others run, it runs
	// again alone.
	timed = "sse-retry"
	// complaint is the prefix of the error message of the client.
	complaint = "conformance client: "
)

// stamped matches the time that the suite appends to the name of a scenario.
var stamped = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[\d-]+Z$`)

func TestConformance(t *testing.T) {
	all, err := expectations()
	require.NoError(t, err)
	folder := buildClient(t)
	for _, e := range all {
		t.Run(e.Release+"/"+e.Suite, func(t *testing.T) {
			outcomes, said := run(t, folder, "./client", e.Release, "--suite", e.Suite)
			for i, o := range outcomes {
				if o.scenario == timed && !o.good() {
					t.Log(timed, "runs again, alone")
					again, more := run(t, folder, "./client", e.Release, "--scenario", timed)
					require.Len(t, again, 1, "%s", more)
					outcomes[i], said = again[0], append(said, more...)
				}
			}
			e.check(t, outcomes, said)
		})
	}
}

// check fails the test if outcomes differ from the expectation, and shows what the suite said.
func (e *expectation) check(t *testing.T, outcomes []outcome, said []byte) {
	t.Helper()
	wrong := e.compare(outcomes)
	for _, w := range wrong {
		t.Error(w)
	}
	if len(wrong) > 0 {
		t.Logf("the suite said:\n%s", said)
	}
}

// buildClient builds the client, and mcpactor, which it runs, and returns the folder in which they are.
func buildClient(t *testing.T) (folder string) {
	folder = t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	said, err := exec.CommandContext(ctx, "go", "build", "-o", folder, "./client", "../../cmd/mcpactor").CombinedOutput()
	require.NoError(t, err, "%s", said)
	return folder
}

// run runs a suite for clients, or one scenario. The suite passes the command to a shell, in the folder.
func run(t *testing.T, folder, command, release, kind, name string) (outcomes []outcome, said []byte) {
	return runSuite(t, folder, release, []string{"client", "--command", command, kind, name})
}

// runSuite runs scenarios of a release. It returns the outcome of each scenario, and the output.
func runSuite(t *testing.T, folder, release string, args []string) (outcomes []outcome, said []byte) {
	here, err := os.Getwd()
	require.NoError(t, err)
	at := func(path ...string) string { return filepath.Join(append([]string{here}, path...)...) }
	node := at("node_modules", ".bin", "node")
	require.FileExists(t, node, "run tests/conformance/install")
	results := t.TempDir()

	ctx, cancel := context.WithTimeout(t.Context(), suiteTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, append(append([]string{
		"--require", at("loopback.cjs"), at("node_modules", "conformance-"+release, "dist", "index.js"),
	}, args...), "--output-dir", results)...)
	cmd.Dir = folder
	// The clients are in the same process group, so that all end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	said, err = cmd.CombinedOutput()
	require.NoError(t, ctx.Err(), "the suite has not ended in time:\n%s", said)
	if err != nil { // the suite also fails when a check fails
		require.ErrorAs(t, err, new(*exec.ExitError), "%s", said)
	}

	require.NoError(t, filepath.WalkDir(results, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "checks.json" {
			return err
		}
		o, err := read(results, filepath.Dir(path))
		outcomes = append(outcomes, o)
		return err
	}))
	return outcomes, said
}

// read reads the outcome of a scenario from its folder.
func read(results, folder string) (outcome, error) {
	name, err := filepath.Rel(results, folder)
	if err != nil {
		return outcome{}, err
	}
	o := outcome{scenario: stamped.ReplaceAllString(filepath.ToSlash(name), "")}
	data, err := os.ReadFile(filepath.Join(folder, "checks.json"))
	if err != nil {
		return outcome{}, err
	}
	if err := json.Unmarshal(data, &o.checks); err != nil {
		return outcome{}, fmt.Errorf("%s: %w", o.scenario, err)
	}
	stderr, err := os.ReadFile(filepath.Join(folder, "stderr.txt"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // only clients have one
		return outcome{}, err
	}
	for line := range strings.Lines(string(stderr)) {
		if after, ok := strings.CutPrefix(line, complaint); ok {
			o.failure = strings.TrimSpace(after)
		}
	}
	return o, nil
}
