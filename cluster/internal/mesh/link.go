package mesh

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
)

// The lanes of a link.
const (
	small = iota
	large
	casts
	laneCount
)

const (
	// largeBody is from how many bytes on a message goes on the lane of large ones.
	largeBody = 128 << 10
	// maxCasts is how many casts may wait to be sent.
	maxCasts = 64
	// crowded is how many bytes may wait before messages that can be missed should be dropped.
	crowded = 1 << 20
)

// Link is the connections to one incarnation of another member. Its methods may be called from any goroutine,
// and do not block.
type Link struct {
	from    link.Address // this incarnation
	to      link.Address
	mesh    *Mesh
	conn    *grpc.ClientConn
	invalid error           // why there is no connection
	ctx     context.Context // ends with the link
	cancel  context.CancelFunc
	kept    context.Context // ends when what is kept is dropped
	drop    context.CancelFunc

	out [laneCount]outgoing
	in  [laneCount]incoming

	mu     sync.Mutex // guards the outgoing lanes, and these
	failed error      // why the last stream that tells of the connection has ended, or nil while it has not
}

// outgoing is a lane for messages to the other member. The mutex of the link guards it.
type outgoing struct {
	box     link.Outbox
	wake    chan struct{} // has a value if something was added
	started bool
}

// newLink returns a link that is not started.
func newLink(m *Mesh, to link.Address) *Link {
	l := &Link{from: link.Address{ID: m.incarnation(), Host: m.cfg.Self.Host}, to: to, mesh: m}
	l.conn, l.invalid = m.connection(to.Host)
	l.ctx, l.cancel = context.WithCancel(m.ctx)
	l.kept, l.drop = context.WithCancel(l.ctx)
	for i := range l.out {
		l.out[i].wake = make(chan struct{}, 1)
	}
	return l
}

// From returns the incarnation of this member that the link is of.
func (l *Link) From() link.Address { return l.from }

// To returns the incarnation that the link is to.
func (l *Link) To() link.Address { return l.to }

// start connects.
func (l *Link) start() {
	closes := func() {
		if <-l.ctx.Done(); l.invalid == nil {
			l.conn.Close() //nolint:errcheck // nothing uses it any longer
		}
	}
	if !l.mesh.run(closes) {
		closes()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to.ID != "" {
		l.startLane(small)
	}
}

// startLane starts the goroutine of a lane, once. The caller has the mutex.
func (l *Link) startLane(lane int) {
	if !l.out[lane].started {
		l.out[lane].started = l.mesh.run(func() { l.run(lane) })
	}
}

// laneOf returns the lane of a message that is not a cast.
func laneOf(m link.Message) int {
	if len(m.Body) >= largeBody {
		return large
	}
	return small
}

// Send sends a message. It fails if it is too large, or if too much is waiting; urgent ones are sent
// nevertheless.
func (l *Link) Send(m link.Message, urgent bool) (*link.Sent, error) {
	lane := laneOf(m)
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := l.out[lane].box.Add(m, urgent)
	if err != nil {
		return nil, err
	}
	if l.kept.Err() != nil {
		l.out[lane].box.Drop()
		return s, nil
	}
	l.added(lane)
	return s, nil
}

// Cast sends a message that may be lost. The last ones wait while there is no connection.
func (l *Link) Cast(m link.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.out[casts].box.Add(m, true); err == nil {
		l.out[casts].box.Trim(maxCasts)
		l.added(casts)
	}
}

// added tells the goroutine of a lane that something was added.
func (l *Link) added(lane int) {
	l.startLane(lane)
	signal(l.out[lane].wake)
}

// Withdraw takes a message of this link back. It reports whether the other member has not got it, and will not
// get it.
func (l *Link) Withdraw(s *link.Sent) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out[laneOf(s.Message)].box.Withdraw(s)
}

// Crowded reports whether so much waits that messages that can be missed should be dropped.
func (l *Link) Crowded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out[small].box.Held()+l.out[large].box.Held() > crowded
}

// Idle reports whether the other member has got all messages.
func (l *Link) Idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out[small].box.Idle() && l.out[large].box.Idle()
}

// Drop ends the link but for casts: what waits is withdrawn, and nothing is received any longer.
func (l *Link) Drop() {
	l.mu.Lock()
	l.drop()
	l.out[small].box.Drop()
	l.out[large].box.Drop()
	l.mu.Unlock()
	for lane := range casts {
		l.in[lane].end()
	}
}

// Close ends the link.
func (l *Link) Close() {
	l.Drop()
	l.in[casts].end()
	l.cancel()
	l.mesh.mu.Lock()
	defer l.mesh.mu.Unlock()
	delete(l.mesh.links, l.to)
}

// run sends what a lane has, on one stream after the other.
func (l *Link) run(lane int) {
	ctx := l.kept
	if lane == casts {
		ctx = l.ctx
	}
	tells := lane == small || l.to.ID == "" // one lane tells of the connection
	for pause := firstRetry; ; {
		connected, err := l.stream(ctx, lane, tells)
		if ctx.Err() != nil {
			return
		}
		if tells {
			l.note(err)
		}
		l.mesh.cfg.Logger.Debug().Str("address", l.to.Host).Err(err).Msg("stream to a member has ended")
		if pause = min(2*pause, lastRetry); connected {
			pause = firstRetry
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// note notes that the stream that tells of the connection is open, or why it is not.
func (l *Link) note(err error) {
	l.mu.Lock()
	l.failed = err
	l.mu.Unlock()
	l.mesh.cfg.Changed(l, stateOf(err))
}

// stateOf returns what a stream says of the other member: that it is open, or why it is not.
func stateOf(err error) (s link.State) {
	switch status.Code(err) {
	case codes.OK:
		s.Connected = true
	case codes.NotFound:
		s.Ended = true
	case codes.FailedPrecondition:
		version, err := strconv.ParseUint(status.Convert(err).Message(), 10, 32)
		if err == nil {
			s.Version = uint32(version)
		}
	}
	return s
}

// streamOf describes the streams. Their method is the only one that a mesh serves.
var streamOf = grpc.StreamDesc{StreamName: "Messages", ServerStreams: true, ClientStreams: true}

// Method is the full name of the method.
const Method = "/mcpactor.cluster.v2.Mesh/Messages"

// errCount is the error of a member that says it has what it cannot have.
var errCount = errors.New("mesh: the member has acknowledged what was not sent")

// stream sends what a lane has, until its stream breaks. connected says whether the member has accepted it.
func (l *Link) stream(ctx context.Context, lane int, tells bool) (connected bool, err error) {
	if l.invalid != nil {
		return false, l.invalid
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	text, err := json.Marshal(hello{l.mesh.cfg.Cluster, l.mesh.cfg.Version, l.from, l.to.ID, lane})
	if err != nil {
		return false, err
	}
	s, err := l.conn.NewStream(metadata.AppendToOutgoingContext(ctx, helloKey, string(text)), &streamOf, Method, grpc.WaitForReady(true))
	if err != nil {
		return false, err
	}
	got, err := receiveCount(s) // the greeting
	if err != nil {
		return false, err
	}
	l.mu.Lock()
	fits := lane == casts || l.out[lane].box.Resume(got)
	l.mu.Unlock()
	if !fits {
		return false, errCount
	}
	if tells {
		l.note(nil)
	}
	ended := make(chan error, 1)
	l.mesh.running.Go(func() {
		defer cancel()
		ended <- l.acknowledge(s, lane)
	})
	l.write(ctx, s, lane)
	cancel()
	return true, <-ended
}

// receiveCount receives a count.
func receiveCount(s grpc.ClientStream) (uint64, error) {
	var got count
	err := s.RecvMsg(&got)
	return uint64(got), err
}

// acknowledge forgets what the other member has got, until the stream breaks.
func (l *Link) acknowledge(s grpc.ClientStream, lane int) error {
	for {
		got, err := receiveCount(s)
		if err != nil {
			return err
		}
		if lane == casts {
			continue
		}
		l.mu.Lock()
		fits := l.out[lane].box.Acknowledged(got)
		l.mu.Unlock()
		if !fits {
			return errCount
		}
	}
}

// write writes what a lane has, until the stream breaks.
func (l *Link) write(ctx context.Context, s grpc.ClientStream, lane int) {
	most := maxBatch
	if lane == large {
		most = 0 // one after the other: those that wait can be withdrawn
	}
	var f frame
	for {
		l.mu.Lock()
		box := &l.out[lane].box
		f.messages = box.Take(f.messages[:0], most)
		if lane == casts {
			box.Drop()
		}
		l.mu.Unlock()
		if len(f.messages) > 0 {
			if s.SendMsg(&f) != nil {
				return
			}
			clear(f.messages)
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-l.out[lane].wake:
		}
	}
}
