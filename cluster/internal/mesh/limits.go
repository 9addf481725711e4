package mesh

import (
	"context"
	"errors"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
)

const (
	// silence is after how long without a byte from the other side a connection is dead. The server asks
	// for a byte after pingAfter, and waits for it for pingFor. gRPC does not let a client ask more often
	// than every 10 s: it watches that the server, which asks, is heard. It is less than a lease by default: a
	// connection that is swallowed is replaced before the members count as cut from each other.
	silence = 1500 * time.Millisecond
	// pingAfter and pingFor are the server's part of that.
	pingAfter, pingFor = time.Second, 2 * time.Second
	// handshakeFor is how long a connection may take to be made.
	handshakeFor = 3 * time.Second
	// idleFor is how long a connection may have no stream.
	idleFor = 5 * time.Second
	// firstRetry and lastRetry are the bounds of the pause before a stream or a connection is made again.
	firstRetry, lastRetry = 20 * time.Millisecond, time.Second
	// streamWindow and connWindow are how many bytes may be on their way.
	streamWindow, connWindow = 1 << 20, 4 << 20
	// maxBatch is how many bytes of small messages go in one frame.
	maxBatch = 64 << 10
	// maxFrame is the largest frame: one of the largest messages.
	maxFrame = link.MaxMessage + 1<<20
	// maxHello is the largest header that is read of a caller.
	maxHello = 16 << 10
	// maxStreams is how many streams a connection may have: one of each lane, and those that end.
	maxStreams = 8
)

// serverLimits are the options that bound what a caller may make this member hold.
func serverLimits() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingFor, MaxConnectionIdle: idleFor}),
		grpc.WaitForHandlers(true), grpc.ConnectionTimeout(handshakeFor), grpc.MaxConcurrentStreams(maxStreams), grpc.MaxHeaderListSize(maxHello),
		grpc.MaxRecvMsgSize(maxFrame), grpc.MaxSendMsgSize(maxFrame), grpc.InitialWindowSize(streamWindow), grpc.InitialConnWindowSize(connWindow),
	}
}

// connection returns a connection to an address, which is made when it is used.
func (m *Mesh) connection(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(m.cfg.credentials()), grpc.WithContextDialer(m.dial), grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(), grpc.WithIdleTimeout(0),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: firstRetry, Multiplier: 2, Jitter: 0.2, MaxDelay: lastRetry}, MinConnectTimeout: handshakeFor}),
		grpc.WithInitialWindowSize(streamWindow), grpc.WithInitialConnWindowSize(connWindow),
		grpc.WithDefaultCallOptions(grpc.CallContentSubtype(codecName), grpc.MaxCallRecvMsgSize(maxHello), grpc.MaxCallSendMsgSize(maxFrame)))
}

// errNotLocal is the error for a member on another machine without TLS.
var errNotLocal = errors.New("mesh: without TLS, members connect on one machine only")

// dial connects to an address.
func (m *Mesh) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := m.cfg.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	if m.cfg.Credentials == nil && !isLocal(conn.RemoteAddr()) {
		conn.Close() //nolint:errcheck // it is not used
		return nil, errNotLocal
	}
	return &watched{Conn: conn}, nil
}

// isLocal reports whether an address is on this machine.
func isLocal(address net.Addr) bool {
	tcp, network := address.(*net.TCPAddr)
	return !network || tcp.IP.IsLoopback()
}

// watched is a connection that fails when nothing is read for a time.
type watched struct {
	net.Conn
	since time.Time // when the deadline was set
}

// Read reads, and waits for [silence] at most.
func (w *watched) Read(to []byte) (int, error) {
	if now := time.Now(); now.Sub(w.since) > silence/8 { // not for each read
		w.since = now
		if err := w.SetReadDeadline(now.Add(silence)); err != nil {
			return 0, err
		}
	}
	return w.Conn.Read(to)
}
