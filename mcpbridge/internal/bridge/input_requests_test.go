package bridge

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/rounds"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
)

// A server may act before it asks again.
func TestInputThatIsRefusedInALaterRoundMayFollowAnEffect(t *testing.T) {
	asks := says(200, outbound.TypeJSON, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required","requestState":"s",`+
		`"inputRequests":{"it":{"method":"elicitation/create","params":{"message":"?"}}}}}`)
	again := says(200, outbound.TypeJSON, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required","requestState":"s"}}`)
	for name, c := range map[string]struct {
		rounds     []answering
		class      mcpbridge.Class
		mayHaveRun bool
	}{
		"at once":                       {[]answering{asks}, mcpbridge.Refused, true},
		"in the second round":           {[]answering{again, asks}, mcpbridge.Refused, true},
		"not authorized":                {[]answering{says(401, "", "")}, mcpbridge.Unauthorized, false},
		"not authorized later":          {[]answering{again, says(401, "", "")}, mcpbridge.Unauthorized, true},
		"too many requests later":       {[]answering{again, says(429, "", "")}, mcpbridge.RateLimited, true},
		"wrong parameters later":        {[]answering{again, says(200, outbound.TypeJSON, failure("%s", "-32602", "no"))}, mcpbridge.Invalid, true},
		"not there later":               {[]answering{again, says(404, "", "")}, mcpbridge.Unavailable, true},
		"no connection in the meantime": {[]answering{again, fails}, mcpbridge.Lost, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			s.answer(rpc.MethodDiscover, says(200, outbound.TypeJSON,
				`{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`))
			conn, err := dialScript(t, s)
			require.NoError(t, err)
			s.answer("tools/call", c.rounds...)
			_, err = rounds.Do(t.Context(), conn.Do, toolCall())
			e := mcpbridge.AsError(err)
			require.NotNil(t, e)
			require.Equal(t, c.class, e.Class, "%v", e)
			require.Equal(t, c.mayHaveRun, e.MayHaveRun())
			require.NoError(t, conn.Close(t.Context()))
		})
	}
}
