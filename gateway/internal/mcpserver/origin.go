package mcpserver

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpactor/mcpactor/internal/loopback"
)

// The headers of MCP.
const headerSession, headerRevision, headerMethod, headerName = "Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"

// checkNames returns an error if a request was sent to a name that may be somebody else's, or by a page of another site. hosts and
// origins are allowed besides those of this machine.
func checkNames(r *http.Request, hosts, origins []string) error {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	_, noAddress := netip.ParseAddr(host)
	if noAddress != nil && !loopback.Is(host) && !contains(hosts, host) {
		return fmt.Errorf("the host name %q is not allowed: use an IP address, or mcpactor serve with --allow-host", host)
	}
	origin := r.Header.Get("Origin")
	if origin == "" || contains(origins, origin) {
		return nil
	}
	if u, err := url.Parse(origin); err != nil || u.Host != r.Host {
		return fmt.Errorf("pages of the origin %q are not allowed: use mcpactor serve with --allow-origin", origin)
	}
	return nil
}

func contains(allowed []string, name string) bool {
	return slices.ContainsFunc(allowed, func(one string) bool { return strings.EqualFold(one, name) })
}

// shareWith tells a browser that a page of one of the origins may send the request, and read the response. isAnswered is true if the
// browser has asked just that. It asks without the token, and about headers of the page's own choice.
func shareWith(w http.ResponseWriter, r *http.Request, origins []string) (isAnswered bool) {
	origin, header := r.Header.Get("Origin"), w.Header()
	if len(origins) > 0 {
		header.Add("Vary", "Origin")
	}
	if !contains(origins, origin) {
		return false
	}
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Expose-Headers", headerSession+", WWW-Authenticate, Retry-After")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	header.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	header.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	header.Set("Access-Control-Allow-Private-Network", "true")
	header.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
