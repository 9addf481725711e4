package mesh

import (
	"context"
	"encoding/json"
	"net"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
)

// hello is what a caller says first. Its fields do not change with the version.
type hello struct {
	Cluster string       `json:"cluster"`
	Version uint32       `json:"version"`
	From    link.Address `json:"from"`
	To      string       `json:"to,omitempty"` // the incarnation that it is for; empty: whoever listens
	Lane    int          `json:"lane"`
}

// helloKey is the key of the hello in the header.
const helloKey = "mcpactor-hello-bin"

var (
	// errStranger is all that a stranger gets to know.
	errStranger = status.Error(codes.PermissionDenied, "")
	// errReplaced says that another stream has taken the place of one, or that the link has ended.
	errReplaced = status.Error(codes.Unavailable, "")
)

// admit returns the link of a caller, and its lane.
func (m *Mesh) admit(ctx context.Context) (*Link, int, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	texts := md.Get(helloKey)
	var h hello
	if len(texts) != 1 || json.Unmarshal([]byte(texts[0]), &h) != nil || h.Cluster != m.cfg.Cluster || !m.proves(ctx, h.From.Host) {
		return nil, 0, errStranger
	}
	if h.To == "" {
		h.From.ID = "" // a cast to whoever listens comes from whoever is there
	}
	l := m.find(h.From)
	switch {
	case l == nil:
		return nil, 0, errStranger
	case h.To != "" && h.To != m.incarnation():
		return nil, 0, status.Error(codes.NotFound, "")
	case h.Version != m.cfg.Version:
		return nil, 0, status.Error(codes.FailedPrecondition, strconv.FormatUint(uint64(m.cfg.Version), 10))
	case h.Lane < 0 || h.Lane >= laneCount || h.To == "" && h.Lane != casts:
		return nil, 0, errStranger
	}
	return l, h.Lane, nil
}

// proves reports whether the certificate of a caller is for its host.
func (m *Mesh) proves(ctx context.Context, address string) bool {
	if m.cfg.Credentials == nil {
		return true
	}
	p, _ := peer.FromContext(ctx)
	info, secure := p.AuthInfo.(credentials.TLSInfo)
	host, _, err := net.SplitHostPort(address)
	return secure && err == nil && len(info.State.VerifiedChains) > 0 && info.State.PeerCertificates[0].VerifyHostname(host) == nil
}

// incoming is a lane for messages of the other member.
type incoming struct {
	mu       sync.Mutex
	stream   *receiver // the last one, or nil
	received uint64    // messages so far
	ended    bool
}

// receiver receives the messages of one stream.
type receiver struct {
	link   *Link
	lane   *incoming
	stream grpc.ServerStream
	ctx    context.Context         // ends with the stream
	end    context.CancelCauseFunc // ends the stream
	some   chan struct{}           // has a value if something was received since the last acknowledgement
}

// ackDelay is how long an acknowledgement waits for more messages. The other member keeps what is not acknowledged.
const ackDelay = 20 * time.Millisecond

// handle serves a stream. It returns when the stream ends, which its client notices.
func (m *Mesh) handle(_ any, stream grpc.ServerStream) error {
	if name, _ := grpc.Method(stream.Context()); name != Method {
		return errStranger
	}
	l, lane, err := m.admit(stream.Context())
	if err != nil {
		return err
	}
	r := newReceiver(stream.Context(), l, lane, stream)
	got, ok := r.lane.begin(r)
	if !ok {
		return errStranger
	}
	if err := stream.SendMsg(count(got)); err != nil {
		return err
	}
	go r.receive()
	return r.acknowledge()
}

// newReceiver returns a receiver that has not begun.
func newReceiver(ctx context.Context, l *Link, lane int, stream grpc.ServerStream) *receiver {
	r := &receiver{link: l, lane: &l.in[lane], stream: stream, some: make(chan struct{}, 1)}
	r.ctx, r.end = context.WithCancelCause(ctx)
	return r
}

// begin makes a stream the only one of the lane, and returns how many messages have come on those before.
func (i *incoming) begin(r *receiver) (received uint64, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended {
		return 0, false
	}
	if i.stream != nil {
		i.stream.end(errReplaced)
	}
	i.stream = r
	return i.received, true
}

// end ends the lane.
func (i *incoming) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stream != nil {
		i.stream.end(errReplaced)
	}
	i.stream, i.ended = nil, true
}

// receive receives messages, until the stream ends. It ends with handle.
func (r *receiver) receive() {
	var f frame
	for {
		if err := r.stream.RecvMsg(&f); err != nil {
			r.end(err)
			return
		}
		for _, m := range f.messages {
			if !r.deliver(m) {
				return
			}
		}
		clear(f.messages)
		signal(r.some)
	}
}

// signal puts a value into a channel that has room for one.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// deliver counts a message, and hands it over. It reports false if another stream has taken the place of this
// one: what that has told its client is final.
func (r *receiver) deliver(m link.Message) bool {
	decoded := r.link.mesh.cfg.Decode(r.link, m)
	r.lane.mu.Lock()
	defer r.lane.mu.Unlock()
	if r.lane.stream != r {
		return false
	}
	r.lane.received++
	r.link.mesh.cfg.Received(r.link, decoded)
	return true
}

// acknowledge tells the client what has come, until the stream ends.
func (r *receiver) acknowledge() error {
	for {
		select {
		case <-r.some:
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
		select {
		case <-time.After(ackDelay):
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
		r.lane.mu.Lock()
		got := r.lane.received
		r.lane.mu.Unlock()
		if err := r.stream.SendMsg(count(got)); err != nil {
			return err
		}
	}
}
