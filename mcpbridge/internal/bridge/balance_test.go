package bridge

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/doubt"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// A refusal is not about the session. r is a refusal of ping in the words of the call, o one in other words, a an
// answer, and - none. The first is what the check gets.
func TestBalanceIsNamedOnlyIfARequestIsRefusedAndAnsweredAndRefused(t *testing.T) {
	for pings, named := range map[string]bool{
		"rar": true, "rrar": true, "raar": true, "-rar": true, "-arar": true,
		"rrrrr": false, // there is no ping
		"raaaa": false, // it was refused for a moment
		"-aar":  false, "rrrra": false,
		"a": false, "o": false, "rao": false, "ra-r": false, "oar": false,
	} {
		t.Run(pings, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				refusal := func(said byte) *mcpbridge.Error {
					return &mcpbridge.Error{Class: mcpbridge.Invalid, Sent: true, Status: 400, Doubt: true, Err: &wire.Evidence{Digest: [16]byte{said}}}
				}
				answers := map[rune]*doubt.Answer{'r': {Refusal: refusal(1)}, 'o': {Refusal: refusal(2)}, 'a': {}}
				a := &fakeSession{list: &doubt.Answer{}}
				for _, ping := range pings {
					a.pings = append(a.pings, answers[ping])
				}
				d := doubts{about: a}
				e := d.settle(t.Context(), &messages.Ping{}, new(wire.Exchange), refusal(1))
				require.Equal(t, named, e.Detail != "", e.Detail)
				require.LessOrEqual(t, a.rounds, 1)
			})
		})
	}
}
