//go:build real

package real

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// H-C5: 20 conversations open two servers each at once, all of which are started by npx. The starts take turns. How long
// they take all together depends on the machine, so that only the time from one session to the next is bounded.
func TestManyServersThatNpxStartsAllOpen(t *testing.T) {
	const conversations, limit = 20, 10 * time.Minute
	h := newHarness(t)
	dir, err := os.Getwd()
	require.NoError(t, err)
	npx := func(name, program string) mcpbridge.Server {
		return mcpbridge.Server{
			Name: name, Command: "npx", Args: []string{"--no", "--", program}, Dir: dir,
			Env: map[string]string{"MEMORY_FILE_PATH": h.dir + "/memory.json"},
		}
	}
	// So many processes take some time to end, also when they are killed.
	h.start(supervisor.Config{CloseTimeout: endTimeout / 2}, npx("everything", "mcp-server-everything"), npx("memory", "mcp-server-memory"))
	began := time.Now()
	var all []*sentCommand
	for i := range conversations {
		for _, server := range []string{"everything", "memory"} {
			list := &messages.ListTools{Header: messages.To(server, fmt.Sprint("conversation-", i))}
			list.Deadline = began.Add(limit)
			all = append(all, h.send(list))
		}
	}
	for n := range all {
		h.limit = time.Now().Add(scenarioTimeout)
		h.eventually("the next session opens", func() bool { return countEvents[*messages.SessionOpened](h) > n })
	}
	for _, list := range all {
		require.IsType(t, &messages.ToolList{}, list.reply())
	}
	t.Logf("%d sessions after %v", len(all), time.Since(began).Round(time.Second))
	require.Equal(t, len(all), countEvents[*messages.SessionOpened](h))
	require.Zero(t, countEvents[*messages.SessionRestarting](h))
	require.Zero(t, countEvents[*messages.SessionGaveUp](h))
}
