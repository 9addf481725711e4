//go:build mutations

package registry

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	mutationTime  = flag.Duration("mutation.time", 30*time.Second, "how long a simulation looks for a mutation")
	mutationOnly  = flag.String("mutation.only", "", "a regular expression for the names of the mutations to run; empty is all")
	mutationSuite = flag.Bool("mutation.suite", false, "also run the other tests with each mutation")
)

// rare are the mutations that a run of a minute may miss.
var rare = map[string]bool{
	"the end of the connection of an earlier incarnation is believed": true,
	"a timer is not awaited at the end":                               true,
	"a call is replayed although it may not be":                       true,
}

// A line of a simulation that has found something, and of a test that has failed.
var (
	violationLine = regexp.MustCompile(`seed (\d+), after ([^:]+): ([^\n]*)`)
	crashLine     = regexp.MustCompile(`(?m)^(?:panic|fatal error): .*`)
	failureLine   = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^(?:panic|fatal error): .*`)
)

// The simulations find each of these bugs, but for those that are rare, and find none without them.
func TestMutations(t *testing.T) {
	found, missed := 0, []string{}
	for _, group := range []struct {
		pkg       string
		mutations []mutation
		flags     []string
	}{
		{"./actors/registry", mutations, []string{"-simulation.shrink", "0", "-simulation.crossings=false"}},
		{"./mcpbridge/internal/doubt", doubtMutations, nil},
	} {
		how, is := look(t, mutation{name: "no bug at all"}, group.pkg, group.flags...)
		require.False(t, is, "without a mutation: %s", how)
		for _, m := range group.mutations {
			if !regexp.MustCompile(*mutationOnly).MatchString(m.name) {
				continue
			}
			how, is := look(t, m, group.pkg, group.flags...)
			if is {
				found++
			} else if !rare[m.name] {
				missed = append(missed, m.name)
			}
			fmt.Printf("%-75s %s\n", m.name, how)
		}
	}
	fmt.Printf("%d found, %d not found that must be\n", found, len(missed))
	require.Empty(t, missed)
}

// look runs the simulation of a package with a mutation on one processor, and reports whether it has found it, and how.
func look(t *testing.T, m mutation, pkg string, flags ...string) (how string, found bool) {
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range m.mutated(t) {
		path, err := filepath.Abs(filepath.Join(moduleRoot, file))
		require.NoError(t, err)
		overlay.Replace[path] = filepath.Join(dir, fmt.Sprint(len(overlay.Replace), ".go"))
		require.NoError(t, os.WriteFile(overlay.Replace[path], []byte(text), 0o644))
	}
	listed, err := json.Marshal(overlay)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), listed, 0o644))
	run := func(args ...string) (string, error) {
		command := exec.Command("go", append([]string{"test", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json")}, args...)...)
		command.Dir = moduleRoot
		out, err := command.CombinedOutput()
		return string(out), err
	}
	out, err := run(append([]string{"-run", "^TestSimulation$", "-cpu", "1", "-timeout", (2 * *mutationTime).String(), pkg, "-simulation.time", mutationTime.String()}, flags...)...)
	require.NotContains(t, out, "[build failed]", m.name)
	switch line := violationLine.FindStringSubmatch(out); {
	case err == nil:
		how = "NOT FOUND"
	case line != nil:
		how, found = fmt.Sprintf("seed %s after %s: %.100s", line[1], line[2], line[3]), true
	default: // a mutation may end the program, or block it; a bad flag does neither
		how, found = crashLine.FindString(out), true
		require.NotEmpty(t, how, "%s: %s", m.name, out)
	}
	if !*mutationSuite || len(m.changes) == 0 {
		return how, found
	}
	began := time.Now()
	out, err = run("-failfast", "-skip", "^TestSimulation", "-timeout", "5m", "./actors/...", "./mcpbridge/internal/...", "./tests")
	if err == nil {
		return how + "; missed by the suite", found
	}
	return fmt.Sprintf("%s; suite after %v: %s", how, time.Since(began).Round(time.Second), strings.TrimSpace(failureLine.FindString(out))), found
}
