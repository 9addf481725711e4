package doubt

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// A front may begin an inquiry during the pause. Once that has settled the doubt, the pause is over.
func TestAVerdictEndsThePauseOfAnEarlierInquiry(t *testing.T) {
	for name, verdict := range map[string]Verdict{"alive": Alive, "late": Late} {
		t.Run(name, func(t *testing.T) {
			m, s := &Machine{}, Session{Now: start}
			one, other := KindOf("tools/call", "one", refusal(400, 0, true, failedCall)), KindOf("tools/call", "other", refusal(400, 0, true, otherWords))
			unsettled, _ := m.Refused(s, one)
			unsettled.conclude(s, Unsettled)
			none, isAlive := m.Refused(s, other)
			require.Nil(t, none)
			require.False(t, isAlive)
			m.Front(s, one, &mcpbridge.Error{Status: 503}).conclude(s, verdict)
			next, _ := m.Refused(s, other)
			require.NotNil(t, next)
		})
	}
}
