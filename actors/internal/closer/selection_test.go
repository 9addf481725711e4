package closer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

func TestCloseCommandsSelectKeys(t *testing.T) {
	keys := []messages.Key{{Server: "s", Scope: "a"}, {Server: "s", Scope: "ab"}, {Server: "s", Scope: "default"}, {Server: "t", Scope: "a"}}
	for _, test := range []struct {
		cmd     messages.Command
		matches []bool // each of the keys
		scope   string
	}{
		{&messages.CloseSession{Key: keys[0]}, []bool{true, false, false, false}, "a"},
		{&messages.CloseSession{Key: messages.Key{Server: "s"}}, []bool{false, false, true, false}, "default"},
		{&messages.CloseScope{Scope: "a"}, []bool{true, false, false, true}, "a"},
		{&messages.CloseScope{}, []bool{false, false, true, false}, "default"},
		{&messages.CloseMatching{Scopes: "a*"}, []bool{true, true, false, true}, ""},
		{&messages.CloseMatching{Scopes: "a*", Server: "s"}, []bool{true, true, false, false}, ""},
		{&messages.CloseServer{Server: "t"}, []bool{false, false, false, true}, ""},
		{&messages.CloseAll{}, []bool{true, true, true, true}, ""},
	} {
		what := selectionOf(test.cmd)
		require.Equal(t, test.scope, what.scope, "%+v", test.cmd)
		for i, key := range keys {
			require.Equal(t, test.matches[i], what.match(key), "%+v %v", test.cmd, key)
			if what.scope == "" && what.match(key) {
				require.True(t, what.server == "" || what.server == key.Server, "its sessions are searched")
			}
		}
	}
}
