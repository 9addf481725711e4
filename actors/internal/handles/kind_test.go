package handles_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors/internal/handles"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Over stdio each scope has a process of its own, and each process counts 1, 2, 3. A handle that is unique is not the process's own.
func TestEachProcessCountsForItself(t *testing.T) {
	for name, c := range map[string]struct {
		server           mcpbridge.Server
		id               string
		isStale, isEnded bool // for the first scope, once the second one has minted; when the first one ends
	}{
		"a process for each scope": {mcpbridge.Server{Command: "browser"}, "1", false, true},
		"one server":               {mcpbridge.Server{URL: "http://browser.invalid"}, "1", true, false},
		"unique":                   {mcpbridge.Server{Command: "browser"}, "a unique name 0001", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.server.Name, c.server.Handles = "s", []mcpbridge.Handle{{Mint: "open", Path: "id", Release: "close"}}
			kind := handles.KindsOf(&c.server)[0]
			b, now := handles.New(), time.Now()
			b.Declare("s", handles.Kinds{kind})
			for _, scope := range []string{"a", "b"} {
				m := &handles.Mint{Kind: kind, By: messages.Key{Server: "s", Scope: scope}, Holder: handles.Holder{Scope: scope}}
				require.True(t, b.Ask(m, now))
				b.Answered(m, handles.Answer{ID: c.id}, 1, now)
			}
			uses, isStale := b.Begins("use", []handles.Name{{Server: "s", Mint: "open", ID: c.id}}, handles.Holder{Scope: "a"}, now)
			require.Equal(t, c.isStale, isStale)
			for _, u := range uses {
				b.Ends(u, &handles.Answer{}, false, now)
			}
			b.Decided()
			b.End(handles.Matches{Key: func(key messages.Key) bool { return key.Scope == "a" }, Scope: "a"}, now, now.Add(time.Second), now)
			released := 0
			for _, d := range b.Decided() {
				if d.Release != nil {
					require.Equal(t, "a", d.Release.By.Scope)
					released++
				}
			}
			require.Equal(t, c.isEnded, released == 1)
			require.Len(t, b.Of("b", ""), 1)
		})
	}
}
