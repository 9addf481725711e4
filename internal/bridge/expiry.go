package bridge

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"

	"github.com/mcpactor/mcpactor/internal/bridge/redact"
	"github.com/mcpactor/mcpactor/internal/bridge/rpc"
)

// refusal is an HTTP response that is not 2xx, and what it is the response to.
type refusal struct {
	status  int
	header  http.Header
	body    []byte
	session bool            // the request carried a session id
	id      json.RawMessage // of the request as it was sent; nil for a notification or a stream
}

// judge says what a refusal means by itself. The table of the package documentation has
// the cases; words play no part in it.
func judge(r refusal, secrets ...string) *mcpbridge.Error {
	msg, text := rpc.Envelope{}, string(r.body)
	if json.Unmarshal(r.body, &msg) == nil && msg.Error != nil {
		text = msg.Error.Message
	} else {
		msg.Error = nil
	}
	e := &mcpbridge.Error{Sent: true, Detail: strconv.Itoa(r.status) + " " + http.StatusText(r.status), Status: r.status}
	said := redact.Clean(plain(text, r.header), secrets...)
	if msg.Error != nil {
		e.Code = msg.Error.Code
	}
	// An error that bears the request's own id may be of who has looked at the request.
	own := msg.Error != nil && rpc.HasID(r.id) && bytes.Equal(bytes.TrimSpace(msg.ID), r.id)
	missing := r.status == http.StatusNotFound || r.status == http.StatusGone
	e.Doubt = r.session && r.status >= 400 && r.status != http.StatusTooManyRequests && !saysAlive(e.Code)
	e.Server = presenceOf(r.status, msg.Error != nil)

	if r.session && missing && !own {
		e.Class, e.Session, e.Doubt, e.Quote = mcpbridge.Expired, mcpbridge.Gone, false, said
		return e
	}
	if said != "" {
		e.Detail += ": " + said
	}
	switch {
	case r.status == http.StatusUnauthorized, r.status == http.StatusForbidden, r.status == http.StatusProxyAuthRequired:
		e.Class = mcpbridge.Unauthorized
	case r.status == http.StatusTooManyRequests:
		e.Class, e.RetryAfter = mcpbridge.RateLimited, retryAfter(r.header)
	case r.status >= 500 || r.status == http.StatusRequestTimeout:
		e.Class, e.RetryAfter = mcpbridge.ServerError, retryAfter(r.header)
	case missing && !own:
		e.Class = mcpbridge.Unavailable
		e.Detail += " (is the URL the server's MCP endpoint?)"
	case r.status >= 400:
		e.Class = mcpbridge.Invalid
	default: // 1xx and 3xx have no business here
		e.Class = mcpbridge.Protocol
	}
	return e
}

// saysAlive reports whether a JSON-RPC error is one that only a session that lives has.
func saysAlive(code int64) bool {
	return code == rpc.CodeURLElicitation || rpc.CodeMCPLast <= code && code <= rpc.CodeMCPFirst
}

// plain drops what is no text for people: pages of a proxy.
func plain(body string, header http.Header) string {
	if strings.Contains(header.Get("Content-Type"), "html") {
		return ""
	}
	return body
}

// maxRetryAfter bounds what a server can ask for.
const maxRetryAfter = 24 * time.Hour

// retryAfter returns the Retry-After of a response, or 0.
func retryAfter(header http.Header) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil && seconds > 0 {
		return min(time.Duration(min(seconds, 1<<30))*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(0, time.Until(at).Round(time.Second)), maxRetryAfter)
	}
	return 0
}
