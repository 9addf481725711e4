package bridge

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// presenceOf returns what a refusal by HTTP shows. rpc is true when its body is a
// JSON-RPC error.
func presenceOf(status int, rpc bool) mcpbridge.Presence {
	switch {
	case status == http.StatusBadGateway, status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		return mcpbridge.Absent
	case rpc, status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired,
		status == http.StatusTooManyRequests:
		return mcpbridge.Present
	}
	return mcpbridge.Strange
}

// presence returns what a handshake that failed with e has shown of the server.
// err is the error behind it.
func (c *conn) presence(e *mcpbridge.Error, ex *exchange, err error) mcpbridge.Presence {
	ex.mu.Lock()
	refused, answered := ex.refusal != nil, ex.answered && ex.failure != nil
	ex.mu.Unlock()
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case e.Class == mcpbridge.Unauthorized || e.Class == mcpbridge.Cancelled:
		return e.Server
	case e.Class == mcpbridge.Protocol:
		return max(e.Server, mcpbridge.Strange)
	case refused:
		return e.Server
	case answered:
		return mcpbridge.Present
	case c.proc == nil && c.x == nil && c.tap == nil: // the command cannot be started
		return mcpbridge.Strange
	case c.proc != nil && e.Session == mcpbridge.Broken: // it ended instead of answering
		return mcpbridge.Strange
	case errors.As(err, &name) && name.IsNotFound, errors.As(err, &certificate), errors.As(err, &record):
		return mcpbridge.Strange
	}
	return e.Server
}
