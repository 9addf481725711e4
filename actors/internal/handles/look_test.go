package handles_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors/internal/handles"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// A mint is sent after the list was asked for, and the server has run it before it lists. The handle is not that of a lost mint.
func TestAListMayHaveWhatWasMintedSinceItWasAskedFor(t *testing.T) {
	kind := handles.KindsOf(&mcpbridge.Server{Name: "s", Handles: []mcpbridge.Handle{{
		Mint: "open", Path: "id", Release: "close", List: "list", Listed: `(\S+)`, Own: true,
	}}})[0]
	b, now := handles.New(), time.Now()
	b.Declare("s", handles.Kinds{kind})
	mint := func(scope string) *handles.Mint {
		m := &handles.Mint{Kind: kind, By: messages.Key{Server: "s", Scope: scope}, Holder: handles.Holder{Scope: scope}}
		require.True(t, b.Ask(m, now))
		return m
	}
	lost := mint("a")
	b.Failed(lost, true, now)
	later := mint("b")
	b.Decided()
	b.Listed(kind, []string{"a handle of b"}, true, now)
	require.Empty(t, b.Decided(), "it waits for the later mint")
	b.Answered(later, handles.Answer{ID: "a handle of b"}, 1, now)
	for _, d := range b.Decided() {
		require.Nil(t, d.Release)
		require.True(t, d.Said == nil || d.Said.What == handles.IsMinted, "%+v", d.Said)
	}
	require.Empty(t, b.Of("a", ""))
	require.Len(t, b.Of("b", ""), 1)
}
