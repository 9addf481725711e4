//go:build mutations

package registry

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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

// rare are the mutations that a run of a minute may miss. Directed tests find them.
var rare = map[string]bool{
	"a session that has expired is left open":                         true, // TestASessionThatHasExpiredIsNotLeftOpen
	"closing what was left forgets another session of the key":        true, // TestASessionThatTheStoreGetsWhileAnotherIsClosedIsNotForgotten
	"nobody fetches a list whose first caller has gone":               true, // TestTheFetchingOfAListEndsAlsoIfItsCallerHasGone
	"a bug forgets what could not be closed":                          true, // TestABugInASessionThatDrainsDoesNotForgetWhatCouldNotBeClosed
	"a leftover keeps another session of its key from being resumed":  true, // TestALeftoverDoesNotKeepAnotherSessionOfItsKeyFromBeingResumed
	"a bug forgets what the store has of a key":                       true, // TestABugAsTheRecordIsLoadedDoesNotForgetTheSessionInTheStore
	"the end of the connection of an earlier incarnation is believed": true, // TestTheLateEndOfAnEarlierConnectionRestartsNothing
	"a call is replayed although it may not be":                       true, // TestLostCallIsReplayedWhenThatIsSafe
	"the store has another generation than callers":                   true, // it needs a bug as a session opens: see TestTheStoreHasTheGenerationOfASessionThatHadABugAsItOpened
	"a place keeps its turn":                                          true, // it needs three places that wait and have permits: see TestPlacesTakeTurns
	"processes that count for themselves share their numbers":         true, // the simulation of handles has one process: see TestEachProcessCountsForItself
}

// A line of a simulation that has found something, and of tests that have failed.
var (
	violationLine = regexp.MustCompile(`seed (\d+), after ([^:]+): ([^\n]*)`)
	crashLine     = regexp.MustCompile(`(?m)^(?:panic|fatal error): .*`)
	failureLine   = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^(?:panic|fatal error|goleak): .*`)
)

// The simulations find each of these bugs, but for those that are rare: in a schedule that passes without the bug. So do the
// other tests, if they are run with -mutation.suite.
func TestMutations(t *testing.T) {
	found, missed := 0, []string{}
	for _, group := range []struct {
		pkg       string
		suite     []string // the packages that use it
		mutations []mutation
	}{
		{"./actors/registry", []string{"./tests"}, mutations},
		{"./mcpbridge/internal/doubt", []string{"./mcpbridge/internal/bridge", "./tests"}, doubtMutations},
		{"./internal/callbook", []string{"./toolset", "./tests"}, callMutations},
		{"./actors/internal/handles", []string{"./tests"}, handleMutations},
	} {
		wanted := slices.DeleteFunc(slices.Clone(group.mutations), func(m mutation) bool { return !regexp.MustCompile(*mutationOnly).MatchString(m.name) })
		if len(wanted) == 0 {
			continue
		}
		intact := buildIntact(t, group.pkg)
		if *mutationSuite {
			by, _ := intact.trySuite(group.suite)
			require.Regexp(t, "NOT FOUND$", by, "without a bug")
		}
		for _, m := range wanted {
			l := look{t, m, "", group.pkg}.build()
			how, is := l.find(intact)
			if is {
				found++
			} else if !rare[m.name] {
				missed = append(missed, m.name)
			}
			if *mutationSuite {
				by, is := l.trySuite(group.suite)
				if how += "; suite: " + by; !is {
					missed = append(missed, m.name+" (by the suite)")
				}
			}
			fmt.Printf("%-75s %s\n", m.name, how)
		}
	}
	fmt.Printf("%d found, %d not found that must be\n", found, len(missed))
	require.Empty(t, missed)
}

// Each directed test passes without a bug, and fails with the bug that it must find.
func TestDirectedMutations(t *testing.T) {
	intact, missed := map[string]look{}, []string{}
	for _, m := range directedMutations {
		name := fmt.Sprintf("%2d %s: %s", m.guarantee, m.test, m.name)
		if !regexp.MustCompile(*mutationOnly).MatchString(name) {
			continue
		}
		began := time.Now()
		if _, is := intact[m.pkg]; !is {
			intact[m.pkg] = buildIntact(t, m.pkg)
		}
		by, is := intact[m.pkg].tryTest(m.test)
		require.False(t, is, "%s: without a bug: %s", name, by)
		if by, is = (look{t, m.mutation, "", m.pkg}).build().tryTest(m.test); !is {
			missed = append(missed, name)
		}
		fmt.Printf("%-100s %-8v %s\n", name, time.Since(began).Round(time.Second), by)
	}
	require.Empty(t, missed)
}

// look looks for a mutation.
type look struct {
	*testing.T
	mutation
	dir string
	pkg string
}

// buildIntact builds the test of a package without a mutation.
func buildIntact(t *testing.T, pkg string) look {
	return look{t, mutation{name: "no bug at all"}, "", pkg}.build()
}

// build builds the test of the package with the mutation, in a folder of its own.
func (l look) build() look {
	l.dir = l.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range l.mutated(l.T) {
		source, err := filepath.Abs(filepath.Join(moduleRoot, file))
		require.NoError(l, err)
		overlay.Replace[source] = filepath.Join(l.dir, fmt.Sprint(len(overlay.Replace), ".go"))
		require.NoError(l, os.WriteFile(overlay.Replace[source], []byte(text), 0o644))
	}
	listed, err := json.Marshal(overlay)
	require.NoError(l, err)
	require.NoError(l, os.WriteFile(filepath.Join(l.dir, "overlay.json"), listed, 0o644))
	out, err := l.test("-c", "-o", filepath.Join(l.dir, "tests"), l.pkg)
	require.NoError(l, err, "%s: %s", l.name, out)
	return l
}

// test runs go test with the mutation.
func (l look) test(args ...string) (string, error) {
	command := exec.Command("go", append([]string{"test", "-vet=off", "-overlay", filepath.Join(l.dir, "overlay.json")}, args...)...)
	command.Dir = moduleRoot
	out, err := command.CombinedOutput()
	return string(out), err
}

// run runs what build has built.
func (l look) run(args ...string) (string, error) {
	command := exec.Command(filepath.Join(l.dir, "tests"), args...)
	command.Dir = filepath.Join(moduleRoot, l.pkg)
	out, err := command.CombinedOutput()
	return string(out), err
}

// simulate runs the simulation with the mutation on one processor.
func (l look) simulate(seed uint64, flags ...string) (string, error) {
	return l.run(append(flags, "-test.run", "^TestSimulation$", "-test.cpu", "1", "-test.timeout", (2 * *mutationTime).String(),
		"-simulation.seed", fmt.Sprint(seed), "-simulation.shrink", "0", "-simulation.crossings=false")...)
}

// find looks for a schedule that fails with the mutation, and that passes without it. It reports how it was found.
func (l look) find(intact look) (how string, found bool) {
	began := time.Now()
	for seed := uint64(1); ; {
		left := *mutationTime - time.Since(began)
		if left <= 0 {
			return "NOT FOUND", false
		}
		out, err := l.simulate(seed, "-simulation.time", left.String())
		if err == nil {
			return "NOT FOUND", false
		}
		line := violationLine.FindStringSubmatch(out)
		if line == nil { // a mutation may end the program, or block it; a bad flag does neither
			how = crashLine.FindString(out)
			require.NotEmpty(l, how, "%s: %s", l.name, out)
			return how, true
		}
		failed, err := strconv.ParseUint(line[1], 10, 64)
		require.NoError(l, err)
		after := time.Since(began).Round(10 * time.Millisecond)
		if out, err := intact.simulate(failed, "-simulation.seeds", "1"); err == nil {
			return fmt.Sprintf("seed %d after %v: %.100s", failed, after, line[3]), true
		} else {
			fmt.Printf("seed %d fails without a mutation: %s\n", failed, violationLine.FindString(out))
		}
		seed = failed + 1
	}
}

// tryTest runs one test with the mutation. It reports how the test has failed.
func (l look) tryTest(name string) (how string, found bool) {
	out, err := l.run("-test.run", "^"+name+"$", "-test.timeout", "3m")
	require.NotContains(l, out, "no tests to run", name)
	return l.failure(out, err)
}

// trySuite runs the other tests with the mutation: those of the package of the simulation, of the packages with the mutation, and
// of others. It reports which has failed first.
func (l look) trySuite(others []string) (how string, found bool) {
	began := time.Now()
	out, err := l.run("-test.failfast", "-test.skip", "^TestSimulation", "-test.timeout", "5m")
	packages := []string{}
	for _, c := range l.changes {
		packages = append(packages, "./"+path.Dir(c.file))
	}
	packages = slices.DeleteFunc(slices.Compact(packages), func(pkg string) bool { return pkg == l.pkg })
	for _, pkg := range append(packages, others...) {
		if err == nil {
			out, err = l.test("-failfast", "-timeout", "5m", pkg)
		}
	}
	how, found = l.failure(out, err)
	return fmt.Sprintf("after %v: %s", time.Since(began).Round(time.Second), how), found
}

// failure reports how tests have failed. A run that was too slow proves nothing, and one that fails in another way, for example because
// it cannot be built, is an error of the mutation.
func (l look) failure(out string, err error) (how string, found bool) {
	switch {
	case err == nil:
		return "NOT FOUND", false
	case strings.Contains(out, "panic: test timed out"):
		return "NOT FOUND: timed out", false
	}
	how = strings.TrimSpace(failureLine.FindString(out))
	require.NotEmpty(l, how, "%s: %s", l.name, out)
	return how, true
}
