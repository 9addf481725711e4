package gateway

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/listfile"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/toolset"
)

// A server that is upgraded while it is away, or before serve starts again, has other tools than the kept list says. No call is decided
// by that list.
func TestFirstCallAfterAnUpgradeIsDecidedByTheListOfItsSession(t *testing.T) {
	const (
		reads  = `{"name":"count","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
		writes = `{"name":"count","inputSchema":{"type":"object","required":["sure"]}}`
	)
	for name, with := range map[string]setup{
		"read-only": {Tools: []toolset.Filter{{Name: "s", ReadOnly: true}}},
		"call_tool": {Tools: []toolset.Filter{{Name: "s"}}, Find: 1, FindCalls: true},
		"freeze":    {Tools: []toolset.Filter{{Name: "s"}}, Stability: toolset.Freeze},
	} {
		for _, isAway := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tools := faults.NewTools()
					server := faults.Local(tools.Handler)
					defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
					defer tools.Close()
					defer server.Close()
					l := listed(server, reads, defined("other", 1))
					with.Lists, with.Sessions = &listfile.Store{Folder: t.TempDir()}, &resume.Memory{}
					with.Supervisor = supervisor.Config{Servers: []mcpbridge.Server{remote("s", server)}}
					call := func(r *raw) string {
						params := `{"name":"count"}`
						if with.FindCalls {
							params = `{"name":"call_tool","arguments":{"name":"count"}}`
						}
						answer := r.request("tools/call", params)
						if answer.Error != nil {
							return answer.Error.Message
						}
						return string(answer.Result)
					}
					w := worldOf(t, with)
					r := w.raw()
					r.open()
					r.tools()
					require.Contains(t, call(r), `"text":"1"`)
					l.set(writes, defined("other", 1))
					if isAway {
						require.NoError(t, server.Restart())
					} else if with.Stability == "" {
						w.stop()
						w = worldOf(t, with)
						r = w.raw()
						r.open()
						r.tools()
					} else { // what was shown before is that of another client
						require.NoError(t, server.Restart())
					}
					require.Regexp(t, "no longer has it|may change something|has changed", call(r))
					sent := 1
					if isAway || with.Stability != "" { // and once to the session that is gone
						sent = 2
					}
					require.Equal(t, sent, server.Count("tools/call"))
					w.stop()
				})
			})
		}
	}
}
