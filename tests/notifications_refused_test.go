package tests

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// C11: a server that has no such notification says so with a 404. That says nothing of the session.
func TestNotificationThatIsNotFoundEndsNoSession(t *testing.T) {
	for _, status := range []int{404, 410} {
		for _, over := range []habits{{}, {sse: true}} {
			overRawHTTP(t, over, func(p *plain) {
				heal := p.server.Inject("notifications/cancelled", faults.Refuse(status, "Not Found"))
				defer heal()
				p.note(p.send(call("a", "count")))
				slow := p.send(call("a", "wait"))
				synctest.Wait()
				p.system.Root.Send(p.pid, &messages.Cancel{Key: messages.Key{Server: "s", Scope: "a"}, ID: slow.cmd.RequestID()})
				p.note(slow)
				synctest.Wait()
				require.NotZero(t, p.server.Count("notifications/cancelled"))
				last := p.send(call("a", "count"))
				p.note(last)
				require.Equal(t, []string{"1", "cancelled?", "3"}, p.said)
				require.EqualValues(t, 1, last.reply().(*messages.ToolResult).Generation)
			})
		}
	}
}
