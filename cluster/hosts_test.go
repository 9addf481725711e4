package cluster

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/mcpactor/mcpactor/cluster/internal/quorum"
)

func TestHostThatCannotWriteItsLogSaysSo(t *testing.T) {
	cfg := Config{Hosts: []string{"127.0.0.1:1"}, Advertise: "127.0.0.1:1", Directory: filepath.Join(t.TempDir(), "members"), Lease: 10 * time.Second}
	h, err := newHosts(&cfg, nil, zerolog.Nop(), func(any) {})
	require.NoError(t, err)
	defer h.close()
	require.NoError(t, os.RemoveAll(cfg.Directory)) // it writes at its first tick
	<-h.ended
	require.Contains(t, h.lacks(), "the log of the host cannot be written: open "+cfg.Directory)
}

// Raft panics when the leader says that this host has stored what it does not have.
func TestHostWithAnOldCopyOfItsLogStops(t *testing.T) {
	const self, other = "127.0.0.1:1", "127.0.0.1:2"
	var log bytes.Buffer
	cfg := Config{Hosts: []string{self, other}, Advertise: self, Directory: t.TempDir(), Lease: minLease}
	first, state, err := quorum.OpenLog(cfg.Directory, self)
	require.NoError(t, err)
	require.NoError(t, first.Close())
	n, err := newNetwork(&cfg, zerolog.Nop(), func(any) {})
	require.NoError(t, err)
	defer n.close()
	h, err := newHosts(&cfg, n, zerolog.New(&log), func(any) {})
	require.NoError(t, err)
	beat, err := proto.Marshal(&pb.Message{Type: pb.MessageType_MsgHeartbeat.Enum(), To: &state.ID, From: proto.Uint64(7), Term: proto.Uint64(5), Commit: proto.Uint64(9)})
	require.NoError(t, err)
	packet, err := json.Marshal(map[string][]byte{"raft": beat})
	require.NoError(t, err)
	h.packet(other, packet)
	<-h.ended
	require.Contains(t, h.lacks(), "tocommit(9) is out of range [lastIndex(0)]")
	require.Contains(t, log.String(), "host has stopped")
	h.close()
}

// CloseLog closes the log of a host that runs, which can no longer be written.
func CloseLog(m *Member) {
	h := m.witness.(*hosts)
	h.do(func() { h.log.Close() })
}
