package mesh

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
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

// wire is a connection. What one end writes comes out at the other end after a delay, also when the one end was
// closed meanwhile.
type wire struct {
	to        string
	near, far net.Conn // of the mesh that has dialed, and of the other one
	mu        *sync.Mutex
	delay     time.Duration
	swallow   [2]bool // what the near end writes, and the far one; also that it has closed
}

// carry carries what one end writes.
func (c *wire) carry(from, to net.Conn, direction int) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		c.mu.Lock()
		delay, swallow := c.delay, c.swallow[direction]
		c.mu.Unlock()
		if swallow && err == nil {
			continue
		}
		time.Sleep(delay)
		if !swallow {
			if err == nil {
				_, err = to.Write(buf[:n])
			} else {
				to.Close()
			}
		}
		if err != nil {
			from.Close()
			return
		}
	}
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
	near, mine := net.Pipe()
	far, other := net.Pipe()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, net.ErrClosed
	case p.conns <- far:
	}
	c := &wire{to: address, near: near, far: far, mu: &w.mu}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = append(w.open, c)
	go c.carry(mine, other, 0)
	go c.carry(other, mine, 1)
	return near, nil
}

// cut closes the near ends of the connections to an address. What is on its way still arrives.
func (w *wires) cut(address string) { w.each(address, func(c *wire) { c.near.Close() }) }

// swallow swallows what is written to the connections to an address that are open: by the near end, the far end, or
// both.
func (w *wires) swallow(address string, near, far bool) {
	w.each(address, func(c *wire) {
		w.mu.Lock()
		defer w.mu.Unlock()
		c.swallow = [2]bool{c.swallow[0] || near, c.swallow[1] || far}
	})
}

// slow delays what is written to the connections that are open.
func (w *wires) slow(delay time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.open {
		c.delay = delay
	}
}

// refusing has an address refuse connections, or no longer.
func (w *wires) refusing(address string, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuse[address] = is
}

// dials returns how often an address was dialed.
func (w *wires) dials(address string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dialed[address]
}

// dialTo returns a dialer whose connections lead to a host.
func dialTo(host string) func(context.Context, string) (net.Conn, error) {
	return func(context.Context, string) (net.Conn, error) {
		near, _ := net.Pipe()
		return &placed{near, &net.TCPAddr{IP: net.ParseIP(host)}}, nil
	}
}

// placed is a connection to an address.
type placed struct {
	net.Conn
	to net.Addr
}

func (p *placed) RemoteAddr() net.Addr { return p.to }

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
	at     []time.Time
	states []link.State
	served chan error
	log    log
}

// log is the lines that a mesh has logged.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	return len(line), nil
}

// refusals returns why streams have ended.
func (m *member) refusals() (texts []string) {
	m.log.mu.Lock()
	defer m.log.mu.Unlock()
	for _, line := range m.log.lines {
		var of struct {
			Error string `json:"error"`
		}
		if json.Unmarshal([]byte(line), &of) == nil && of.Error != "" {
			texts = append(texts, of.Error)
		}
	}
	return texts
}

// messages returns the messages that have come.
func (m *member) messages() []link.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.got)
}

// arrival returns when a message has come.
func (m *member) arrival(id uint64) (at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, msg := range m.got {
		if msg.ID == id {
			at = m.at[i]
		}
	}
	return at
}

func (w *wires) member(t *testing.T, id string, set func(*Config)) *member {
	t.Helper()
	m := &member{served: make(chan error, 1)}
	cfg := Config{
		Cluster: "test", Version: 1, Self: link.Address{ID: id, Host: id + ":1"}, Dial: w.dial,
		Decode: func(_ *Link, msg link.Message) any { return msg },
		Received: func(_ *Link, msg any) {
			m.mu.Lock()
			m.got, m.at = append(m.got, msg.(link.Message)), append(m.at, time.Now())
			m.mu.Unlock()
		},
		Changed: func(_ *Link, s link.State) { m.mu.Lock(); m.states = append(m.states, s); m.mu.Unlock() },
	}
	cfg.Logger = zerolog.New(&m.log)
	if set != nil {
		set(&cfg)
	}
	m.Mesh = New(cfg)
	l := w.listen(cfg.Self.Host)
	go func() { m.served <- m.Serve(l) }()
	t.Cleanup(func() {
		m.end()
		time.Sleep(time.Second) // until nothing is on its way
	})
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

// told returns what the mesh has told of its links.
func (m *member) told() []link.State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.states)
}

// last returns the last of it.
func (m *member) last() (last link.State) {
	for _, s := range m.told() {
		last = s
	}
	return last
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
