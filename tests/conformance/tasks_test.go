//go:build conformance

package conformance

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/tests/taskserver"
)

// tasksRelease is the release of the suite that has the tasks of SEP-2663.
const tasksRelease = "0.2.0-alpha.12"

// taskScenario matches a scenario of tasks in the list of all that the suite has for the protocol.
var taskScenario = regexp.MustCompile(`scenario: (tasks-\S+)`)

// The suite has scenarios of tasks for servers only. The server that the tests of tasks run against passes them: what the
// module understands is what the authors of the extension test.
func TestServerOfTasksConforms(t *testing.T) {
	server := taskServer(t)
	var (
		mu       sync.Mutex
		outcomes []outcome
	)
	t.Run("scenarios", func(t *testing.T) {
		for _, scenario := range taskScenarios(t) {
			t.Run(scenario, func(t *testing.T) {
				t.Parallel()
				got, said := runSuite(t, ".", tasksRelease, []string{"server", "--url", server, "--scenario", scenario})
				require.Len(t, got, 1, "%s", said)
				mu.Lock()
				defer mu.Unlock()
				outcomes = append(outcomes, got...)
			})
		}
	})
	expected := expectation{Scenarios: 10, Passed: 44, LeftOut: []leftOut{{
		Scenario: "server-tasks-status-notifications", Checks: []string{"tasks-status-notifications"}, Status: "SKIPPED",
		Reason: "The suite does not have it yet.",
	}}}
	require.Empty(t, expected.compare(outcomes))
}

// taskServer starts the server that the tests of tasks run against, and returns its URL.
func taskServer(t *testing.T) string {
	t.Helper()
	tasks := taskserver.New()
	tasks.Poll, tasks.ASCII = 100*time.Millisecond, true
	server := httptest.NewServer(tasks.Handler())
	t.Cleanup(server.Close)
	return server.URL
}

// taskScenarios returns the scenarios of tasks that the suite has.
func taskScenarios(t *testing.T) (names []string) {
	t.Helper()
	list, err := os.ReadFile(filepath.Join("node_modules", "conformance-"+tasksRelease, "requirements", "2026-07-28.yaml"))
	require.NoError(t, err)
	for _, found := range taskScenario.FindAllStringSubmatch(string(list), -1) {
		names = append(names, found[1])
	}
	require.NotEmpty(t, names)
	return names
}
