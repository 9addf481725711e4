package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/gofrs/flock"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// State is what a host has stored. ID is that of its voter, and is never zero; the rest is empty in a host without a log.
type State struct {
	ID       uint64
	Hard     *pb.HardState
	Snapshot *pb.Snapshot
	Entries  []*pb.Entry
}

// Log is the file with the state of a host. Its records are appended, each with its length and a checksum, and are on
// the disk when Save returns. A record at the end that was not written as a whole was never acted on, and is
// dropped. It is used by one goroutine of one process.
type Log struct {
	path string
	file *os.File
	lock *flock.Flock // of a file beside the log, which is replaced. It ends with the process
}

// headerSize is that of the length and the checksum in front of a record.
const headerSize = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// OpenLog opens the log of the host at an address in a directory, which several hosts may use, or begins one. It returns
// the state in it.
func OpenLog(directory, address string) (*Log, State, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, State{}, err
	}
	path := filepath.Join(directory, strings.NewReplacer(":", "_", "/", "_").Replace(address)+".log")
	l := &Log{path: path, lock: flock.New(path + ".lock")}
	switch locked, err := l.lock.TryLock(); {
	case err != nil:
		return nil, State{}, fmt.Errorf("%s cannot be locked: %w", path, err)
	case !locked:
		return nil, State{}, fmt.Errorf("another process uses %s, the log of this host in Config.Directory: stop that process first", path)
	}
	state, err := l.open()
	if err != nil {
		l.Close() //nolint:errcheck // nothing was written
		return nil, State{}, err
	}
	return l, state, nil
}

// open opens the file, or begins one. It returns the state in it.
func (l *Log) open() (State, error) {
	data, err := os.ReadFile(l.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		state := State{ID: NewID()}
		return state, l.replace(state)
	case err != nil:
		return State{}, err
	}
	state, size, err := replay(data)
	if err != nil {
		return State{}, fmt.Errorf("%s: %w: remove the file, and the host joins as a new one", l.path, err)
	}
	if err := os.Truncate(l.path, int64(size)); err != nil {
		return State{}, err
	}
	return state, l.openFile()
}

// openFile opens the file, to which records are appended.
func (l *Log) openFile() (err error) {
	l.file, err = os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND, 0o600)
	return err
}

// NewID returns the id of a voter that has never been one.
func NewID() uint64 { return 1 + rand.Uint64N(1<<62) }

// Save stores what is new, without an ID. all returns the whole state, which replaces the file when there is a snapshot.
func (l *Log) Save(s *State, all func() State) error {
	if s.Snapshot != nil {
		return l.replace(all())
	}
	data, err := encode(*s)
	if err != nil {
		return err
	}
	if _, err := l.file.Write(data); err != nil {
		return err
	}
	return l.file.Sync()
}

// replace replaces the file: a crash leaves the old one, or the new one.
func (l *Log) replace(state State) error {
	data, err := encode(state)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(l.path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	l.file.Close() // if there is one: Windows replaces no file that is open
	if err := os.Rename(l.path+".new", l.path); err != nil {
		return err
	}
	return errors.Join(l.openFile(), syncDirectory(filepath.Dir(l.path)))
}

// Close closes the file, which another process may use then.
func (l *Log) Close() error {
	return errors.Join(l.file.Close(), l.lock.Close())
}

// encode returns the record of a state, or of a part of one, which has no ID: the message of raft to who stores it.
func encode(s State) ([]byte, error) {
	m := &pb.Message{Type: pb.MsgStorageAppend.Enum(), From: &s.ID, Snapshot: s.Snapshot, Entries: s.Entries}
	if s.Hard != nil {
		m.Term, m.Vote, m.Commit = s.Hard.Term, s.Hard.Vote, s.Hard.Commit
	}
	body, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}
	data := make([]byte, headerSize, headerSize+len(body))
	binary.LittleEndian.PutUint32(data, uint32(len(body)))
	binary.LittleEndian.PutUint32(data[4:], crc32.Checksum(body, castagnoli))
	return append(data, body...), nil
}

// replay returns the state of a file, and the size of the records that are whole. What follows them is dropped: at most one
// record that was not written as a whole, or zeros. If a whole record is found in it, one before that was written and is damaged.
func replay(data []byte) (state State, size int, err error) {
	for body := first(data); body != nil; body = first(data[size:]) {
		if err := state.add(body); err != nil {
			return state, size, fmt.Errorf("the record at %d cannot be read: %w", size, err)
		}
		size += headerSize + len(body)
	}
	for at := size + 1; at < len(data); at++ {
		if first(data[at:]) != nil {
			return state, size, fmt.Errorf("the record at %d is damaged", size)
		}
	}
	if state.ID == 0 {
		return state, size, errors.New("it is no log of a host")
	}
	return state, size, nil
}

// first returns the body of the record at the beginning of data, or nil if there is no whole record. No body is empty.
func first(data []byte) []byte {
	if len(data) < headerSize {
		return nil
	}
	length, sum, rest := binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:]), data[headerSize:]
	if length == 0 || uint64(length) > uint64(len(rest)) || crc32.Checksum(rest[:length], castagnoli) != sum {
		return nil
	}
	return rest[:length]
}

// add adds a record.
func (s *State) add(body []byte) error {
	var m pb.Message
	if err := proto.Unmarshal(body, &m); err != nil {
		return err
	}
	if m.GetFrom() != 0 {
		*s = State{ID: m.GetFrom()}
	}
	if m.Term != nil {
		s.Hard = &pb.HardState{Term: m.Term, Vote: m.Vote, Commit: m.Commit}
	}
	if m.Snapshot != nil {
		s.Snapshot = m.Snapshot
	}
	for _, e := range m.Entries {
		for len(s.Entries) > 0 && s.Entries[len(s.Entries)-1].GetIndex() >= e.GetIndex() {
			s.Entries = s.Entries[:len(s.Entries)-1]
		}
		s.Entries = append(s.Entries, e)
	}
	return nil
}

// syncDirectory has the names in a directory on the disk. Windows has no such call.
func syncDirectory(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
