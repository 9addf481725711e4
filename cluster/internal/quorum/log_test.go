package quorum

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

func entryOf(index, term uint64) *pb.Entry {
	return &pb.Entry{Index: &index, Term: &term, Data: []byte("x")}
}

func hardOf(term uint64) *pb.HardState {
	return &pb.HardState{Term: &term, Vote: proto.Uint64(3), Commit: proto.Uint64(1)}
}

// A log that was cut anywhere has all that was stored before, and nothing else, also if zeros follow, as after a power cut.
func TestLogThatWasCutAnywhereHasWhatWasStored(t *testing.T) {
	directory := t.TempDir()
	l, begun, err := OpenLog(directory, "127.0.0.1:8091")
	require.NoError(t, err)
	require.NotZero(t, begun.ID)
	none := func() State { panic("there is no snapshot") }
	var sizes []int64
	for i := range uint64(5) {
		info, err := os.Stat(l.path)
		require.NoError(t, err)
		sizes = append(sizes, info.Size())
		require.NoError(t, l.Save(&State{Hard: hardOf(i + 1), Entries: []*pb.Entry{entryOf(i+1, i+1), entryOf(i+2, i+1)}}, none))
	}
	require.NoError(t, l.Close())
	data, err := os.ReadFile(l.path)
	require.NoError(t, err)
	for i := range 2 * (len(data) + 1) {
		size := i / 2
		require.NoError(t, os.WriteFile(filepath.Join(directory, "cut_1.log"), append(data[:size:size], make([]byte, i%2*512)...), 0o600))
		cut, state, err := OpenLog(directory, "cut:1")
		if int64(size) < sizes[0] {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err)
		whole := 0
		for whole < 4 && int64(size) >= sizes[whole+1] {
			whole++
		}
		if size == len(data) {
			whole = 5
		}
		require.Equal(t, begun.ID, state.ID)
		require.Equal(t, uint64(whole), state.Hard.GetTerm())
		if whole > 0 {
			require.Len(t, state.Entries, whole+1)
			require.Equal(t, uint64(whole), state.Entries[whole].GetTerm())
		}
		require.NoError(t, cut.Save(&State{Hard: hardOf(9)}, none))
		require.NoError(t, cut.Close())
		again, state, err := OpenLog(directory, "cut:1")
		require.NoError(t, err)
		require.Equal(t, uint64(9), state.Hard.GetTerm())
		require.NoError(t, again.Close())
	}
}

func TestSnapshotReplacesTheLog(t *testing.T) {
	directory := t.TempDir()
	l, begun, err := OpenLog(directory, "h:1")
	require.NoError(t, err)
	whole := State{ID: begun.ID, Hard: hardOf(7), Snapshot: &pb.Snapshot{Data: []byte("all"), Metadata: &pb.SnapshotMetadata{Index: proto.Uint64(4)}}, Entries: []*pb.Entry{entryOf(5, 7)}}
	require.NoError(t, l.Save(&State{Entries: []*pb.Entry{entryOf(1, 1)}}, nil))
	require.NoError(t, l.Save(&State{Snapshot: whole.Snapshot}, func() State { return whole }))
	require.NoError(t, l.Save(&State{Entries: []*pb.Entry{entryOf(6, 7)}}, nil))
	require.NoError(t, l.Close())
	l, state, err := OpenLog(directory, "h:1")
	require.NoError(t, err)
	require.Equal(t, begun.ID, state.ID)
	require.Equal(t, "all", string(state.Snapshot.GetData()))
	require.Equal(t, []uint64{5, 6}, []uint64{state.Entries[0].GetIndex(), state.Entries[1].GetIndex()})
	require.NoError(t, l.Close())
}

// A record that another one follows was written as a whole. If any bit of it is wrong, the log is refused, and is left as it is.
func TestDamagedLogIsRefused(t *testing.T) {
	directory := t.TempDir()
	l, _, err := OpenLog(directory, "h:1")
	require.NoError(t, err)
	require.NoError(t, l.Save(&State{Hard: hardOf(1)}, nil))
	before, err := os.ReadFile(l.path)
	require.NoError(t, err)
	require.NoError(t, l.Save(&State{Hard: hardOf(2)}, nil))
	require.NoError(t, l.Close())
	data, err := os.ReadFile(l.path)
	require.NoError(t, err)
	for i := range 8 * len(before) {
		data[i/8] ^= 1 << (i % 8)
		require.NoError(t, os.WriteFile(l.path, data, 0o600))
		_, _, err = OpenLog(directory, "h:1")
		require.ErrorContains(t, err, "is damaged: remove the file, and the host joins as a new one", "bit %d", i)
		after, err := os.ReadFile(l.path)
		require.NoError(t, err)
		require.Equal(t, data, after)
		data[i/8] ^= 1 << (i % 8)
	}
}

// A log that is open is not opened a second time, also after a snapshot has replaced its file.
func TestLogIsLockedWhileItIsOpen(t *testing.T) {
	directory := t.TempDir()
	l, begun, err := OpenLog(directory, "h:1")
	require.NoError(t, err)
	for range 2 {
		_, _, err = OpenLog(directory, "h:1")
		require.ErrorContains(t, err, "another process uses "+l.path+", the log of this host in Config.Directory")
		require.NoError(t, l.Save(&State{Snapshot: &pb.Snapshot{}}, func() State { return begun }))
	}
	other, _, err := OpenLog(directory, "h:2")
	require.NoError(t, err)
	require.NoError(t, other.Close())
	require.NoError(t, l.Close())
	l, state, err := OpenLog(directory, "h:1")
	require.NoError(t, err)
	require.Equal(t, begun.ID, state.ID)
	require.NoError(t, l.Close())
}

// Whatever is in a file, it is a state or an error.
func FuzzLog(f *testing.F) {
	whole, err := encode(State{ID: 5, Hard: hardOf(2), Entries: []*pb.Entry{entryOf(1, 1)}})
	require.NoError(f, err)
	f.Add(whole)
	f.Add(append(whole, whole...))
	f.Fuzz(func(t *testing.T, data []byte) {
		state, size, err := replay(data)
		require.LessOrEqual(t, size, len(data))
		if err == nil {
			require.NotZero(t, state.ID)
		}
	})
}
