package tasks

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTaskIsWhatItsServerDescribes(t *testing.T) {
	task, err := Decode([]byte(`{"resultType": "complete", "taskId": "1", "status": "input_required", "statusMessage": "asks", "createdAt": "2026-11-24T12:00:00Z",
		"lastUpdatedAt": "2026-11-24T12:00:00Z", "ttlMs": null, "pollIntervalMs": 1500,
		"inputRequests": {"name": {"method": "elicitation/create", "params": {"message": "who?", "requestedSchema": {"type": "object", "properties": {}}}}}}`), false)
	require.NoError(t, err)
	require.Equal(t, "1", task.ID)
	require.Equal(t, InputRequired, task.Status)
	require.False(t, task.IsOver())
	require.Contains(t, task.Inputs, "name")
	require.Equal(t, 1500*time.Millisecond, task.Pause(0))
	for status, over := range map[Status]bool{Working: false, Cancelled: true} {
		task, err := Decode([]byte(`{"taskId": "1", "status": "`+string(status)+`"}`), false)
		require.NoError(t, err)
		require.Equal(t, over, task.IsOver())
	}
}

func TestTaskThatIsNoneIsRefused(t *testing.T) {
	for raw, want := range map[string]string{
		`{"status": "working"}`: "its taskId has 0 bytes",
		`{"taskId": "` + strings.Repeat("x", 1025) + `", "status": "working"}`: "its taskId has 1025 bytes; 1 to 1024",
		`{"taskId": "1", "status": "completed"}`:                               "has no result",
		`{"taskId": "1", "status": "failed"}`:                                  "has no error",
		`{"taskId": "1", "status": "pondering"}`:                               `its status is not known ("pondering")`,
		`{"taskId": "1"}`:                                                      "its status is not known",
		`{"taskId": 1, "status": "working"}`:                                   "taskId",
		`{"task": {"taskId": "1"}, "ttl": 10}`:                                 "its taskId has 0 bytes", // that of protocol 2025-11-25
	} {
		_, err := Decode([]byte(raw), false)
		require.ErrorContains(t, err, want)
	}
}

// A server may create a task that is over already. What has become of it comes with its state.
func TestNewTaskMayBeOver(t *testing.T) {
	for _, status := range []Status{Completed, Failed, Cancelled} {
		task, err := Decode([]byte(`{"taskId": "1", "status": "`+string(status)+`", "pollIntervalMs": 60000}`), true)
		require.NoError(t, err)
		require.True(t, task.IsOver())
		require.Zero(t, task.Pause(0))
		require.Equal(t, time.Minute, task.Pause(1))
	}
}

// The server is asked as often as it wants within bounds, and less often while it does not answer.
func TestPauseIsWhatTheServerWants(t *testing.T) {
	for interval, want := range map[string][]time.Duration{
		"":                          {time.Second, 2 * time.Second, time.Minute},
		`, "pollIntervalMs": null`:  {time.Second, 2 * time.Second, time.Minute},
		`, "pollIntervalMs": -5`:    {time.Second, 2 * time.Second, time.Minute},
		`, "pollIntervalMs": 1`:     {50 * time.Millisecond, 100 * time.Millisecond, 51200 * time.Millisecond},
		`, "pollIntervalMs": 2500`:  {2500 * time.Millisecond, 5 * time.Second, time.Minute},
		`, "pollIntervalMs": 1e300`: {time.Minute, time.Minute, time.Minute},
	} {
		task, err := Decode([]byte(`{"taskId": "1", "status": "working"`+interval+`}`), true)
		require.NoError(t, err)
		require.Equal(t, want, []time.Duration{task.Pause(0), task.Pause(1), task.Pause(1000)}, interval)
	}
}
