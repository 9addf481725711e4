package oauthresource

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/mcpactor/mcpactor/internal/loopback"
)

// maxRedirects bounds the redirects of a request for metadata.
const maxRedirects = 10

// sharedSpace is the address space that providers share among customers (RFC 6598).
var sharedSpace = netip.MustParsePrefix("100.64.0.0/10")

// protected returns a client that dials only public addresses and that of a server, and follows only what [CheckRedirect] lets
// through. A client with a Transport of its own keeps it.
func protected(client *http.Client, server *url.URL) *http.Client {
	c := *client
	c.CheckRedirect = CheckRedirect
	if base, ok := http.DefaultTransport.(*http.Transport); ok && c.Transport == nil {
		c.Transport = direct{proxied: base, public: publicTransport(base, server)}
	}
	return &c
}

// direct is a transport that checks the addresses it dials. It dials none for a request that has a proxy.
type direct struct{ proxied, public *http.Transport }

func (d direct) RoundTrip(req *http.Request) (*http.Response, error) {
	if d.proxied.Proxy != nil {
		if proxy, err := d.proxied.Proxy(req); err != nil || proxy != nil {
			return d.proxied.RoundTrip(req)
		}
	}
	return d.public.RoundTrip(req)
}

// publicTransport returns a transport that dials only public addresses and that of a server.
func publicTransport(base *http.Transport, server *url.URL) *http.Transport {
	_, own, _ := strings.Cut(origin(server), "://")
	dialer, checking := net.Dialer{Timeout: findTimeout}, net.Dialer{Timeout: findTimeout, Control: checkAddress}
	t := base.Clone()
	t.Proxy = nil
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if host, port, err := net.SplitHostPort(address); err == nil && strings.EqualFold(host+":"+port, own) {
			return dialer.DialContext(ctx, network, address)
		}
		return checking.DialContext(ctx, network, address)
	}
	return t
}

// checkAddress returns an error for an address that is not public.
func checkAddress(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err == nil && !isPublic(at.Addr()) {
		err = fmt.Errorf("%s is not a public address", at.Addr())
	}
	return err
}

func isPublic(ip netip.Addr) bool {
	ip = ip.Unmap()
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !sharedSpace.Contains(ip)
}

// CheckRedirect lets a request for metadata be redirected only within its origin, or over https to a public address.
func CheckRedirect(req *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	case origin(req.URL) == origin(via[0].URL):
		return nil
	case req.URL.Scheme != "https":
		return errors.New("a redirect to another origin without https")
	}
	addresses, err := net.DefaultResolver.LookupNetIP(req.Context(), "ip", req.URL.Hostname())
	for _, ip := range addresses {
		if !isPublic(ip) {
			return fmt.Errorf("a redirect to %s, which is not a public address", ip)
		}
	}
	return err
}

// mayAsk reports whether a server may name a URL of metadata: over https, or on this machine if the server is there; and an
// address that is not public only if it is that of the server.
func mayAsk(at, server *url.URL) bool {
	if origin(at) == origin(server) {
		return at.Scheme == "https" || at.Scheme == "http" && loopback.IsUnder(at.Hostname())
	}
	ip, err := netip.ParseAddr(at.Hostname())
	return at.Scheme == "https" && !loopback.IsUnder(at.Hostname()) && (err != nil || isPublic(ip))
}

// Web speaks to authorization servers. It sends tokens and codes to no other address than it was told.
var Web = &http.Client{
	Timeout: 30 * time.Second,
	CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if via[0].Method != http.MethodGet {
			return http.ErrUseLastResponse
		}
		return CheckRedirect(req, via)
	},
}
