package cli

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
)

// ListenHost returns the host of an address to listen at, which is empty for all addresses of the machine. The error says what to write
// in place of something that is no address.
func ListenHost(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err == nil && port != "" {
		if _, err := net.DefaultResolver.LookupPort(context.Background(), "tcp", port); err != nil {
			return "", Usagef("--listen: %q: the port must be a number from 0 to 65535", addr)
		}
		return host, nil
	}
	bare := strings.Trim(addr, "[]")
	_, isNumber := strconv.Atoi(addr)
	ip, isIP := netip.ParseAddr(bare)
	switch {
	case isNumber == nil:
		return "", Usagef("--listen: %q has no host: write 127.0.0.1:%s", addr, addr)
	case strings.Contains(addr, "://"):
		return "", Usagef("--listen: %q is a URL: write HOST:PORT, such as 127.0.0.1:8090", addr)
	case isIP == nil && ip.Is6() || strings.Count(bare, ":") > 1:
		return "", Usagef("--listen: %q: write an IPv6 address in brackets, and then the port: [::1]:8090", addr)
	}
	return "", Usagef("--listen: %q has no port: write %s", addr, net.JoinHostPort(strings.TrimSuffix(bare, ":"), "8090"))
}

// The errors of Windows. Elsewhere, no error has these numbers.
const wsaAddrInUse, wsaAddrNotAvail = syscall.Errno(10048), syscall.Errno(10049)

// listen listens at an address. The error says what to change.
func listen(addr string) (net.Listener, error) {
	host, err := ListenHost(addr)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", addr)
	_, isUnknown := errors.AsType[*net.DNSError](err)
	switch {
	case isUnknown:
		return nil, Usagef("--listen: there is no host %q: use 127.0.0.1, or 0.0.0.0 for all addresses of this machine", host)
	case errors.Is(err, syscall.EADDRINUSE), errors.Is(err, wsaAddrInUse):
		return nil, Usagef("--listen: another program listens at %s: use another port", addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, wsaAddrNotAvail):
		return nil, Usagef("--listen: %s is no address of this machine: use 127.0.0.1, or 0.0.0.0 for all addresses", host)
	case errors.Is(err, fs.ErrPermission):
		return nil, Usagef("--listen: this user may not listen at %s: use a port from 1024 on", addr)
	case err != nil:
		return nil, Usagef("--listen: %w", err)
	}
	return l, nil
}
