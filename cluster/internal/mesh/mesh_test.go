package mesh

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
)

// wires is a network in memory.
type wires struct {
	mu        sync.Mutex
	listeners map[string]*port
	open      []*wire
	refuse    map[string]bool // addresses that do not answer
	dialed    map[string]int
}

func newWires() *wires {
	return &wires{listeners: map[string]*port{}, refuse: map[string]bool{}, dialed: map[string]int{}}
}

// port is a listener.
type port struct {
	address string
	conns   chan net.Conn
	closed  chan struct{}
	close   func()
}

func (p *port) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *port) Close() error   { p.close(); return nil }
func (p *port) Addr() net.Addr { return pipeAddr(p.address) }

type pipeAddr string

func (pipeAddr) Network() string  { return "memory" }
func (a pipeAddr) String() string { return string(a) }

func (w *wires) listen(address string) net.Listener {
	p := &port{address: address, conns: make(chan net.Conn), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listeners[address] = p
	return p
}

// wire is one end of a connection, whose bytes may be swallowed.
type wire struct {
	net.Conn
	to      string
	mu      *sync.Mutex
	swallow bool
}

func (c *wire) Write(b []byte) (int, error) {
	c.mu.Lock()
	swallow := c.swallow
	c.mu.Unlock()
	if swallow {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (w *wires) dial(ctx context.Context, address string) (net.Conn, error) {
	w.mu.Lock()
	p := w.listeners[address]
	w.dialed[address]++
	refused := w.refuse[address] || p == nil
	w.mu.Unlock()
	if refused {
		return nil, errors.New("refused")
	}
	near, far := net.Pipe()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, net.ErrClosed
	case p.conns <- w.add(far, address):
	}
	return w.add(near, address), nil
}

func (w *wires) add(c net.Conn, to string) *wire {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := &wire{Conn: c, to: to, mu: &w.mu}
	w.open = append(w.open, one)
	return one
}

// cut closes the connections to an address.
func (w *wires) cut(address string) {
	w.each(address, func(c *wire) { c.Close() })
}

// swallow swallows what is written to the connections to an address that are open.
func (w *wires) swallow(address string) {
	w.each(address, func(c *wire) { w.mu.Lock(); c.swallow = true; w.mu.Unlock() })
}

func (w *wires) each(address string, f func(*wire)) {
	w.mu.Lock()
	open := w.open
	w.mu.Unlock()
	for _, c := range open {
		if c.to == address {
			f(c)
		}
	}
}

// member is a mesh with what it has got.
type member struct {
	*Mesh
	mu     sync.Mutex
	got    []link.Message
	states []link.State
	served chan error
}

func (w *wires) member(t *testing.T, id string, set func(*Config)) *member {
	t.Helper()
	m := &member{served: make(chan error, 1)}
	cfg := Config{
		Cluster: "test", Version: 1, Self: link.Address{ID: id, Host: id + ":1"}, Logger: zerolog.Nop(), Dial: w.dial,
		Received: func(_ *Link, msg link.Message) { m.mu.Lock(); m.got = append(m.got, msg); m.mu.Unlock() },
		Changed:  func(_ *Link, s link.State) { m.mu.Lock(); m.states = append(m.states, s); m.mu.Unlock() },
	}
	if set != nil {
		set(&cfg)
	}
	m.Mesh = New(cfg)
	l := w.listen(cfg.Self.Host)
	go func() { m.served <- m.Serve(l) }()
	t.Cleanup(m.end)
	return m
}

// end closes the mesh.
func (m *member) end() {
	m.Close()
	<-m.served
	m.served <- nil
}

func (m *member) link(t *testing.T, to string) *Link {
	t.Helper()
	return m.Link(link.Address{ID: to, Host: to + ":1"})
}

// ids returns the ids of the messages that have come.
func (m *member) ids() (ids []uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, msg := range m.got {
		ids = append(ids, msg.ID)
	}
	return ids
}

func (m *member) last() link.State {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.states) == 0 {
		return link.State{}
	}
	return m.states[len(m.states)-1]
}

func send(t *testing.T, l *Link, ids ...uint64) (list []*link.Sent) {
	t.Helper()
	for _, id := range ids {
		s, err := l.Send(link.Message{Type: "t", ID: id, Body: []byte("body")}, false)
		require.NoError(t, err)
		list = append(list, s)
	}
	return list
}

func TestMessagesArriveInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		a, b := w.member(t, "a", nil), w.member(t, "b", nil)
		ab, ba := a.link(t, "b"), b.link(t, "a")
		send(t, ab, 1, 2, 3)
		send(t, ba, 4)
		time.Sleep(time.Second)
		require.Equal(t, []uint64{1, 2, 3}, b.ids())
		require.Equal(t, []uint64{4}, a.ids())
		require.True(t, ab.Idle())
		require.Equal(t, link.State{Connected: true}, a.last())
	})
}
