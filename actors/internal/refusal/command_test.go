package refusal

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// What each command requires: a key or scope that is valid, a server that is configured, a supervisor that does not stop.
func TestCommandsAreRefused(t *testing.T) {
	const bad = "a\x00b"
	r := New(&contract.Config{}, table.New(&mcpbridge.Limits{}, table.Tenants{}), nil)
	r.table.Servers["known"] = &table.Server{}
	key := func(server, scope string) messages.Key { return messages.Key{Server: server, Scope: scope} }
	for _, test := range []struct {
		cmd                       messages.Command
		invalid, unknown, running messages.Command // that are refused, or nil
	}{
		{&messages.CloseSession{Key: key("known", "a")}, &messages.CloseSession{Key: key("known", bad)}, &messages.CloseSession{Key: key("other", "a")}, nil},
		{&messages.CloseScope{Scope: "a"}, &messages.CloseScope{Scope: bad}, nil, nil},
		{&messages.CloseServer{Server: "known"}, nil, &messages.CloseServer{Server: "other"}, nil},
		{&messages.CloseMatching{Scopes: "a*"}, &messages.CloseMatching{Scopes: "[" + bad}, &messages.CloseMatching{Server: "other", Scopes: "a*"}, nil},
		{&messages.CloseAll{}, nil, nil, nil},
		{&messages.Check{Key: key("known", "a")}, &messages.Check{Key: key("known", bad)}, &messages.Check{Key: key("other", "a")}, nil},
		{&messages.Restart{Key: key("known", "a")}, &messages.Restart{Key: key("known", bad)}, &messages.Restart{Key: key("other", "a")}, &messages.Restart{Key: key("known", "a")}},
		{&messages.Pin{Key: key("known", "a")}, &messages.Pin{Key: key("known", bad)}, &messages.Pin{Key: key("other", "a")}, &messages.Pin{Key: key("known", "a")}},
		{&messages.Forget{Server: "known"}, nil, &messages.Forget{Server: "other"}, nil},
		{&messages.CancelScope{Scope: "a"}, &messages.CancelScope{Scope: bad}, nil, nil},
		{&messages.Bind{Scope: "a"}, &messages.Bind{Scope: bad}, nil, &messages.Bind{Scope: "a"}},
		{&messages.Cancel{Key: key("other", bad)}, nil, nil, nil},
		{&messages.Inspect{Server: "other"}, nil, nil, nil},
	} {
		name := fmt.Sprintf("%T", test.cmd)
		r.table.Stopping = false
		require.Nil(t, r.OfCommand(test.cmd), name)
		if test.invalid != nil {
			require.Equal(t, messages.CodeInvalid, r.OfCommand(test.invalid).Code, name)
		}
		if test.unknown != nil {
			require.Equal(t, messages.CodeUnknownServer, r.OfCommand(test.unknown).Code, name)
		}
		r.table.Stopping = true
		if test.running == nil {
			require.Nil(t, r.OfCommand(test.cmd), name)
		} else {
			require.Equal(t, messages.CodeDraining, r.OfCommand(test.running).Code, name)
		}
	}
}
