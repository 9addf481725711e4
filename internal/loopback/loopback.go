// Package loopback tells which hosts are this machine.
package loopback

import (
	"net/netip"
	"net/url"
	"strings"
)

const name = "localhost"

// Is reports whether a host is localhost or an address that leads to this machine: nobody else can make these lead elsewhere. An
// IPv6 address has no brackets.
func Is(host string) bool {
	host = normal(host)
	ip, err := netip.ParseAddr(host)
	return host == name || err == nil && ip.Unmap().IsLoopback()
}

// IsUnder reports the same, and also whether a host is a name under localhost. Such a name belongs to this machine (RFC 6761), but
// some resolvers ask the network for it.
func IsUnder(host string) bool { return Is(host) || strings.HasSuffix(normal(host), "."+name) }

// IsPort reports whether a URL leads to a path at a port of this machine over http, as that to which a login returns.
func IsPort(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "http" && u.Port() != "" && u.Path != "" && Is(u.Hostname())
}

func normal(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }
