package quorum

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// asked has a host asked for its vote in a term, and returns whether it gives it.
func (c *hosts) asked(voter, candidate string, term uint64) (granted bool) {
	c.t.Helper()
	h := c.all[voter]
	data, err := proto.Marshal(&pb.Message{
		Type: pb.MessageType_MsgVote.Enum(), To: &h.id, From: &c.all[candidate].id, Term: &term,
		Index: proto.Uint64(1 << 20), LogTerm: &term, // it has more of the log
	})
	require.NoError(c.t, err)
	packet, err := json.Marshal(frame{Raft: data})
	require.NoError(c.t, err)
	h.Receive(candidate, packet)
	c.drive(voter)
	for _, p := range c.packets {
		var f frame
		var m pb.Message
		require.NoError(c.t, json.Unmarshal(p.Data, &f))
		require.NoError(c.t, proto.Unmarshal(f.Raft, &m))
		granted = granted || p.To == candidate && m.GetType() == pb.MessageType_MsgVoteResp && m.GetTerm() == term && !m.GetReject()
	}
	c.packets, c.from = nil, nil
	return granted
}

// Two leaders of one term would do requests in two orders.
func TestHostVotesOnceInATermAlsoWhenItIsRestarted(t *testing.T) {
	c := newHosts(t, 1, 3)
	c.run(60)
	voter, one, other := c.names[0], c.names[1], c.names[2]
	c.restart(voter, true) // it has heard no leader
	require.True(t, c.asked(voter, one, 99))
	require.True(t, c.asked(voter, one, 99), "its answer may have been lost")
	require.False(t, c.asked(voter, other, 99))
	c.restart(voter, true)
	require.False(t, c.asked(voter, other, 99))
	require.True(t, c.asked(voter, one, 99))
	require.True(t, c.asked(voter, other, 100))
}
