package recordkey

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

func TestKeysAreOfOneKind(t *testing.T) {
	session := messages.Key{Server: "s", Scope: "a"}
	for _, one := range []struct {
		key                                  messages.Key
		list, call, handle, login, ofSession bool
	}{
		{key: session, ofSession: true},
		{key: List("s", "tools"), list: true},
		{key: Call("a", "1"), call: true},
		{key: OldCall(session, "1"), call: true},
		{key: Handle(session, "1"), handle: true},
		{key: Login("https://example.com/mcp"), login: true},
	} {
		require.Equal(t, []bool{one.list, one.call, one.handle, one.login, one.ofSession},
			[]bool{IsList(one.key), IsCall(one.key), IsHandle(one.key), IsLogin(one.key), IsOfSession(one.key)}, one.key)
		require.Equal(t, one.key, one.key.Normal())
	}
	require.NotEqual(t, Login("a"), Login("b"))
}
