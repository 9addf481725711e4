//go:build linux

// Package network is a network between processes of one machine that can be cut. Each
// process listens on an address of its own, and the others reach it through a [Proxy]. The
// proxy asks the system which process a connection comes from, so that the network between
// two processes can be cut while others reach both.
package network

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Network is a set of named processes. Its methods may be called from any goroutine.
type Network struct {
	mu      sync.Mutex
	names   map[int]string     // by process id
	cut     map[[2]string]bool // from, to
	changed chan struct{}      // closed at each change of cut

	looking sync.Mutex
	seen    sockets // under looking: of the last look
}

// New returns a network without processes.
func New() *Network {
	return &Network{names: map[int]string{}, cut: map[[2]string]bool{}, changed: make(chan struct{})}
}

// Name gives a process its name. A connection of a process without a name comes from "".
func (n *Network) Name(pid int, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[pid] = name
}

// Cut stops everything that passes from one process to another: bytes are held back, and
// connections stay open, as when packets are lost. Heal lets them pass again.
func (n *Network) Cut(from, to string) { n.set(from, to, true) }

// Heal ends a [Network.Cut].
func (n *Network) Heal(from, to string) { n.set(from, to, false) }

func (n *Network) set(from, to string, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[[2]string{from, to}] = cut
	close(n.changed)
	n.changed = make(chan struct{})
}

// passes waits until bytes may pass. It returns false if done is closed before.
func (n *Network) passes(from, to string, done <-chan struct{}) bool {
	for {
		n.mu.Lock()
		cut, changed := n.cut[[2]string{from, to}], n.changed
		n.mu.Unlock()
		if !cut {
			return true
		}
		select {
		case <-changed:
		case <-done:
			return false
		}
	}
}

// Proxy passes connections on to the address that a process listens on.
type Proxy struct {
	network  *Network
	listener net.Listener
	name     string // of the process
	to       string
	done     chan struct{}
	running  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// Listen starts a proxy for a process, which listens on an address.
func (n *Network) Listen(name, to string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	p := &Proxy{network: n, listener: l, name: name, to: to, done: make(chan struct{}), conns: map[net.Conn]bool{}}
	p.running.Go(p.accept)
	return p, nil
}

// Addr returns the address at which the others reach the process.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close closes the proxy and its connections, and waits until they are closed.
func (p *Proxy) Close() {
	close(p.done)
	closeQuietly(p.listener)
	p.mu.Lock()
	for c := range p.conns {
		closeQuietly(c)
	}
	p.conns = nil
	p.mu.Unlock()
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(c) })
	}
}

// track keeps a connection for Close. It returns false after Close.
func (p *Proxy) track(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		closeQuietly(c)
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) serve(in net.Conn) {
	if !p.track(in) {
		return
	}
	defer p.close(in)
	from := p.network.owner(in)
	if !p.network.passes(from, p.name, p.done) {
		return
	}
	out, err := net.DialTimeout("tcp", p.to, time.Second)
	if err != nil || !p.track(out) {
		return
	}
	defer p.close(out)
	var both sync.WaitGroup
	both.Go(func() { p.copy(out, in, from, p.name) })
	both.Go(func() { p.copy(in, out, p.name, from) })
	both.Wait()
}

func (p *Proxy) close(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	closeQuietly(c)
}

// closeQuietly closes what may be closed already.
func closeQuietly(c io.Closer) {
	c.Close() // there is nothing to do about it
}

// copy copies bytes, and at their end closes the writing side, but not while the network is cut.
func (p *Proxy) copy(to, from net.Conn, sender, receiver string) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if !p.network.passes(sender, receiver, p.done) {
			return
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				closeQuietly(from)
				return
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			to.(*net.TCPConn).CloseWrite() //nolint:errcheck // the other side may be closed
			return
		default:
			closeQuietly(to)
			return
		}
	}
}
