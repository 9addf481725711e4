//go:build linux

package calls

import (
	"io"
	"net"
	"sync"
)

// wire passes connections on to a server, unless it is cut.
type wire struct {
	listener net.Listener
	to       string
	running  sync.WaitGroup

	mu    sync.Mutex
	isCut bool
	conns map[net.Conn]bool
}

// newWire returns a wire to a server.
func newWire(to string) (*wire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{listener: l, to: to, conns: map[net.Conn]bool{}}
	w.running.Go(func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			w.running.Go(func() { w.pass(c) })
		}
	})
	return w, nil
}

// addr returns the address of the wire.
func (w *wire) addr() string { return w.listener.Addr().String() }

// pass passes on what comes from a client, and from the server.
func (w *wire) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer server.Close()
	if !w.add(client, server) {
		return
	}
	defer w.remove(client, server)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer client.Close()
		io.Copy(client, server) // the connection ends
	}()
	io.Copy(server, client) // the connection ends
	server.Close()
	<-done
}

// add notes connections, and reports whether they may be used.
func (w *wire) add(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isCut {
		return false
	}
	for _, c := range conns {
		w.conns[c] = true
	}
	return true
}

// remove forgets connections.
func (w *wire) remove(conns ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		delete(w.conns, c)
	}
}

// cut closes all connections, and new ones until heal. A request may have reached the server whose response is lost.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = true
	for c := range w.conns {
		c.Close()
	}
	clear(w.conns)
}

// heal lets connections pass again.
func (w *wire) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = false
}

// close ends the wire.
func (w *wire) close() {
	w.listener.Close()
	w.cut()
	w.running.Wait()
}
