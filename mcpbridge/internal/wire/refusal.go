package wire

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
)

// Refusal is an HTTP response that is not a 2xx, with the properties of its request.
type Refusal struct {
	Status int
	Header http.Header
	Body   []byte
	// OfSession is true if the request belongs to a session that is open.
	OfSession bool
	// ID is the id of the request on the wire; nil for a notification or a stream.
	ID json.RawMessage
	// Session is the id of the session. If it is empty, a 404 does not mean that the session has expired.
	Session string
}

// Judge returns what a refusal means by itself. The documentation of package mcpbridge lists the cases. Judge
// does not interpret the words of the server.
func (r Refusal) Judge(secrets ...string) *mcpbridge.Error {
	msg, text := rpc.Envelope{}, string(r.Body)
	if parts := rpc.Elements(r.Body); len(parts) == 1 && json.Unmarshal(parts[0], &msg) == nil && msg.Error != nil {
		text = msg.Error.Message
	} else {
		msg.Error = nil
	}
	// Only a server that has read the request knows its id, and may have processed the request.
	own := msg.Error != nil && rpc.HasID(r.ID) && rpc.SameID(msg.ID, r.ID)
	evidence := r.evidence(msg, own)
	e := &mcpbridge.Error{
		Sent: true, Detail: strconv.Itoa(r.Status) + " " + http.StatusText(r.Status), Status: r.Status,
		Own: own, Server: presenceOf(r.Status, msg.Error != nil), Err: evidence,
	}
	said := redact.Clean(plain(text, r.Header), secrets...)
	if msg.Error != nil {
		e.Code = msg.Error.Code
	}
	missing := IsMissing(r.Status) && !own
	e.Doubt = r.OfSession && r.Status >= 300 && r.Status != http.StatusTooManyRequests && !saysAlive(e.Code) && (r.Session != "" || !missing || evidence.Front)

	if missing && r.Session != "" && !evidence.Front {
		e.Class, e.Session, e.Doubt, e.Quote = mcpbridge.Expired, mcpbridge.Gone, false, said
		return e
	}
	if said != "" {
		e.Shared = e.Detail
		e.Detail += ": " + said
	}
	switch {
	case r.Status == http.StatusUnauthorized, r.Status == http.StatusForbidden, r.Status == http.StatusProxyAuthRequired:
		e.Class = mcpbridge.Unauthorized
	case r.Status == http.StatusTooManyRequests:
		e.Class, e.RetryAfter = mcpbridge.RateLimited, RetryAfter(r.Header)
	case r.Status >= 500, r.Status == http.StatusRequestTimeout, evidence.Front:
		e.Class, e.RetryAfter = mcpbridge.ServerError, RetryAfter(r.Header)
	case missing:
		e.Class = mcpbridge.Unavailable
	case r.Status >= 400:
		e.Class = mcpbridge.Invalid
	default: // neither 1xx nor 3xx is an answer
		e.Class = mcpbridge.Protocol
	}
	return e
}

// evidence returns what a refusal shows besides its status and code. msg is its JSON-RPC error, if it has one.
func (r Refusal) evidence(msg rpc.Envelope, own bool) *Evidence {
	mayBeFront := presenceOf(r.Status, false) == mcpbridge.Absent || IsMissing(r.Status) && isPage(r.Body)
	e := &Evidence{Front: r.OfSession && !own && mayBeFront}
	if own && r.Session == "" {
		e.Said = &jsonrpc.Error{Code: msg.Error.Code, Message: msg.Error.Message, Data: msg.Error.Data}
	}
	switch {
	case msg.Error != nil:
		e.Digest = DigestOfError(msg.Error.Code, msg.Error.Message, msg.Error.Data, r.Session)
	case r.Body != nil:
		e.Digest = DigestOf(string(r.Body), r.Session)
	}
	return e
}

// isPage reports whether a body is a document in HTML or XML. The content type does not show it: some servers
// refuse an unknown session with plain text as text/html.
func isPage(body []byte) bool {
	return bytes.HasPrefix(rpc.Trimmed(body), []byte("<"))
}

// IsMissing reports whether a status says that an endpoint or a session does not exist.
func IsMissing(status int) bool {
	return status == http.StatusNotFound || status == http.StatusGone
}

// Alike reports whether two refusals have the same status and code. A nil error is no refusal.
func Alike(e, other *mcpbridge.Error) bool {
	return e != nil && other != nil && e.Status == other.Status && e.Code == other.Code
}

// saysAlive reports whether a server answers with this JSON-RPC error only if it knows the session.
func saysAlive(code int64) bool {
	return code == rpc.CodeURLElicitation || rpc.CodeMCPLast <= code && code <= rpc.CodeMCPFirst
}

// plain returns a body without the HTML pages of proxies, which are of no use in an error text.
func plain(body string, header http.Header) string {
	if strings.Contains(header.Get("Content-Type"), "html") {
		return ""
	}
	return body
}

// presenceOf returns what a status shows about the server. isJSONRPC is true if the body is a
// JSON-RPC error.
func presenceOf(status int, isJSONRPC bool) mcpbridge.Presence {
	switch {
	case status == http.StatusBadGateway, status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		return mcpbridge.Absent
	case isJSONRPC, status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired,
		status == http.StatusTooManyRequests:
		return mcpbridge.Present
	}
	return mcpbridge.Strange
}

// maxRetryAfter bounds the delay that a server can ask for.
const maxRetryAfter = 24 * time.Hour

// RetryAfter returns the Retry-After of a response, or 0.
func RetryAfter(header http.Header) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil && seconds > 0 {
		return min(time.Duration(min(seconds, 1<<30))*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(0, time.Until(at).Round(time.Second)), maxRetryAfter)
	}
	return 0
}
