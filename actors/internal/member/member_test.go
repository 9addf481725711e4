package member

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// A member runs the calls of its keys. It answers what another member asks of its catalogue only while there is no cluster.
func TestCallsAreForTheMemberThatOwnsTheirKeys(t *testing.T) {
	key, list := messages.Key{Server: "s", Scope: "a"}, messages.Key{Server: "s", Scope: "list"}
	cluster := func(owns bool) protocol.Cluster {
		return protocol.Cluster{Owns: func(messages.Key) bool { return owns }}
	}
	for _, test := range []struct {
		cluster    protocol.Cluster
		list       messages.Key
		owns, mine bool
	}{
		{protocol.Cluster{}, messages.Key{}, true, true},
		{protocol.Cluster{}, list, true, true},
		{cluster(true), messages.Key{}, true, true},
		{cluster(false), messages.Key{}, false, false},
		{cluster(true), list, true, false},
	} {
		m := New(&contract.Config{}, table.New(&mcpbridge.Limits{}, table.Tenants{}))
		m.Join(test.cluster)
		require.Equal(t, test.owns, m.Owns(key))
		require.Equal(t, test.mine, m.IsFor(&contract.Call{Key: key, List: test.list}))
	}
}

func TestASnapshotNamesItsMember(t *testing.T) {
	m := New(&contract.Config{}, nil)
	snap := &messages.Snapshot{Total: 3, Open: 2, Cap: 5}
	m.Describe(snap)
	require.Empty(t, snap.Members)
	m.Join(protocol.Cluster{Self: func() messages.MemberSnapshot { return messages.MemberSnapshot{Name: "one"} }})
	m.Describe(snap)
	require.Equal(t, []messages.MemberSnapshot{{Name: "one", Sessions: 3, Open: 2, Cap: 5}}, snap.Members)
}
