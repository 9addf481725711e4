package mcpbridge

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
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
