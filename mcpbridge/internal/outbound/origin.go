package outbound

import (
	"net"
	"net/url"
	"strings"
)

func sameOrigin(one, two *url.URL) bool {
	return one.Scheme == two.Scheme && one.Host == two.Host || originOf(one) == originOf(two)
}

// originOf returns the origin of a URL: scheme, host, and the port unless it is the default of the scheme.
func originOf(u *url.URL) string {
	scheme, host, port := strings.ToLower(u.Scheme), strings.ToLower(u.Hostname()), u.Port()
	if port != "" && port != map[string]string{"http": "80", "https": "443"}[scheme] {
		return scheme + "://" + net.JoinHostPort(host, port)
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return scheme + "://" + host
}
