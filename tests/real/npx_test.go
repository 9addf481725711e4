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

// H-C5: 20 conversations with two servers each, all started by npx at once. On few
// processors most of the time goes into the starts, which take turns.
func TestManyServersThatNpxStartsAllOpen(t *testing.T) {
	const conversations, limit = 20, 3 * time.Minute
	w := newWorld(t)
	w.limit = time.Now().Add(limit + time.Minute)
	dir, err := os.Getwd()
	require.NoError(t, err)
	npx := func(name, program string) mcpbridge.Server {
		return mcpbridge.Server{
			Name: name, Command: "npx", Args: []string{"--no", "--", program}, Dir: dir,
			Env: map[string]string{"MEMORY_FILE_PATH": w.dir + "/memory.json"},
		}
	}
	w.start(supervisor.Config{}, npx("everything", "mcp-server-everything"), npx("memory", "mcp-server-memory"))
	began := time.Now()
	var all []*pending
	for i := range conversations {
		for _, server := range []string{"everything", "memory"} {
			list := &messages.ListTools{Header: messages.To(server, fmt.Sprint("conversation-", i))}
			list.Deadline = began.Add(limit)
			all = append(all, w.send(list))
		}
	}
	w.until("all are answered", func() bool {
		for _, p := range all {
			if len(p.replies) == 0 {
				return false
			}
		}
		return true
	})
	t.Logf("%d sessions after %v", len(all), time.Since(began).Round(time.Second))
	require.Equal(t, len(all), count[*messages.SessionOpened](w))
	require.Zero(t, count[*messages.SessionRestarting](w))
	require.Zero(t, count[*messages.SessionGaveUp](w))
}
