// Package freeport selects addresses for servers that are stopped and started again, and
// for processes that are told where to listen. It is for tests.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Addr returns an address of loopback with a port that nobody listens on. Systems do
// not assign ports of its range by themselves: a port that they assigned once, they would
// give to somebody else while its server is stopped.
func Addr() (string, error) {
	l, err := Listen()
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// Listen listens on such an address.
func Listen() (l net.Listener, err error) {
	for range 100 {
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))); err == nil {
			break
		}
	}
	return l, err
}
