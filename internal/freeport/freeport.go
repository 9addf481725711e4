// Package freeport selects addresses for servers that are stopped and started again, and
// for processes that are told where to listen.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
)

// Addr returns an address of a host of this machine, with a port that nobody listens on.
// Systems do not assign ports of its range by themselves: a port that they assigned once, they
// would give to somebody else while its server is stopped.
func Addr(host string) (string, error) {
	l, err := Listen(host)
	if err != nil {
		return "", err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return net.JoinHostPort(host, port), l.Close()
}

// Listen listens on such an address.
func Listen(host string) (l net.Listener, err error) {
	for range 20 {
		if l, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(10_000+rand.IntN(20_000)))); err == nil {
			break
		}
	}
	return l, err
}
