package mcpbridge

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
)

// Presence is what a failed dial has shown of the server, and so whose fault the
// failure is: the server's, or that of the key that was dialed.
type Presence uint8

// The presences of a server. The zero value is what a [Dialer] of your own returns
// for a server that cannot be reached.
const (
	// Absent: nothing answered, or what did said that the server cannot now (502, 503,
	// 504). Other keys would find the same.
	Absent Presence = iota
	// Strange: something answered, or was started, and it is no MCP server. The
	// configuration is wrong; or, where there has been a server before, something
	// stands in for it while it is down.
	Strange
	// Present: the server answered. What failed is a matter of the key.
	Present
)

// presenceOf returns what a refusal by HTTP shows. rpc is true when its body is a
// JSON-RPC error.
func presenceOf(status int, rpc bool) Presence {
	switch {
	case status == http.StatusBadGateway, status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		return Absent
	case rpc, status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired,
		status == http.StatusTooManyRequests:
		return Present
	}
	return Strange
}

// presence returns what a handshake that failed with e has shown of the server.
// err is the error behind it.
func (c *conn) presence(e *Error, ex *exchange, err error) Presence {
	ex.mu.Lock()
	refused, answered := ex.refusal != nil, ex.answered && ex.failure != nil
	ex.mu.Unlock()
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case e.Class == Unauthorized || e.Class == Cancelled:
		return e.Server
	case e.Class == Protocol:
		return max(e.Server, Strange)
	case refused:
		return e.Server
	case answered:
		return Present
	case c.proc == nil && c.x == nil && c.tap == nil: // the command cannot be started
		return Strange
	case c.proc != nil && e.Session == Broken: // it ended instead of answering
		return Strange
	case errors.As(err, &name) && name.IsNotFound, errors.As(err, &certificate), errors.As(err, &record):
		return Strange
	}
	return e.Server
}

// Endpoint stands for what the server is reached at: its URL, its command with
// arguments, environment and directory, or the server in memory. Servers with the
// same Endpoint are up and down together. It is a hash, which tells no secret, and
// is stable as long as the process runs.
func (s *Server) Endpoint() string {
	sum := sha256.New()
	add := func(parts ...string) {
		for _, part := range parts {
			fmt.Fprintf(sum, "%d:%s", len(part), part)
		}
	}
	switch {
	case s.URL != "":
		add("url", s.URL)
	case s.InMemory != nil:
		add("memory", fmt.Sprintf("%p", s.InMemory))
	default:
		add("command", s.Command, s.Dir)
		add(s.Args...)
		for _, name := range slices.Sorted(maps.Keys(s.Env)) {
			add(name, s.Env[name])
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
