package handles

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// A holder that comes back after a restart keeps what it has held. One that shares its scope comes back alone.
func TestWhoComesBackKeepsItsHandles(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		alive Holder
		keeps []string
	}{
		"nobody":     {Holder{Scope: "other"}, nil},
		"the scope":  {Holder{Scope: "s"}, []string{"ann's", "bob's"}},
		"one holder": {Holder{"s", "ann"}, []string{"ann's"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := New()
			b.Declare("web", KindsOf(&mcpbridge.Server{Name: "web", Handles: []mcpbridge.Handle{{Mint: "open", Path: "id", Release: "close"}}}))
			for _, holder := range []string{"ann", "bob"} {
				key := messages.Key{Server: "web", Scope: "s"}
				b.Restore(messages.Key{Scope: holder}, Record{Key: key, Holder: holder, Mint: "open", ID: holder + "'s", Since: now}, now.Add(time.Minute), now)
			}
			b.Alive(c.alive)
			b.Due(now.Add(time.Minute))
			var keeps []string
			for _, h := range b.Of("s", "") {
				keeps = append(keeps, h.Handle)
			}
			require.ElementsMatch(t, c.keeps, keeps)
		})
	}
}
