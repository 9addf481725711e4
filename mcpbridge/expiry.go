package mcpbridge

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// rpcError is the error member of a JSON-RPC response.
type rpcError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// rpcEnvelope is what has to be known of a JSON-RPC message.
type rpcEnvelope struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Error   *rpcError       `json:"error"`
}

// isCall reports whether the message is a request that wants an answer.
func (m *rpcEnvelope) isCall() bool { return m.Method != "" && hasID(m.ID) }

func hasID(id json.RawMessage) bool { return len(id) > 0 && string(id) != "null" }

// The JSON-RPC errors that a dispatcher makes after it found the session, and
// MCP's error for a wrong header.
const (
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
)

// unknownSession finds, in the words of servers seen, that a refusal is about
// the session and not about anything else in the request. Underscores and dashes
// are blanks.
var unknownSession = regexp.MustCompile(`(?i)` + strings.Join([]string{
	// "Session not found", "session_id abc has expired", "Session terminated"
	`\bsession(?: id)?\b[^.{}]{0,80}?\b(?:(?:can)?not (?:be )?(?:found|known|valid|exist|recogni[sz]ed|initiali[sz]ed|active|match)|(?:does|is|was)n't (?:found|known|valid|exist|recogni[sz]ed|active|match)|no longer|unknown|invalid|inactive|expired|missing|mismatch|terminated|ended|closed|destroyed|gone|timed out|required)\b`,
	// "No valid session ID provided", "Invalid or missing session", "invalid_session"
	`\b(?:no(?: valid| such| active)?|invalid|inactive|missing|unknown|expired|unrecogni[sz]ed|stale|bad|terminated|closed|dead|not find)\b[^.{}]{0,40}?\bsession\b`,
	// the header by its name
	`\bmcp ?session(?: ?id)?\b`,
	`\b(?:server|session|transport|client)[^.{}]{0,20} not (?:yet )?(?:been )?initiali[sz]ed\b`,
	`\bsession(?:id)?(?:notfound|expired|invalid)\b`,
	`\bexpect(?:ed|ing|s)? initialize\b`,
}, "|"))

var blanks = strings.NewReplacer("_", " ", "-", " ")

// judge says what a refusal means: an HTTP response to a request that is not
// 2xx. hadSession tells whether the request carried a session id.
//
// The rule behind the table of the design: 404 and 410 mean an unknown session
// (the specification says so of 404), and so does any other client error whose
// body says it. It takes a request that carried a session id: without one, 404
// is a wrong URL. A JSON-RPC error that only a dispatcher can have made, after
// it had found the session, is an answer to the request.
func judge(status int, header http.Header, body []byte, hadSession bool, secrets ...string) *Error {
	msg := rpcEnvelope{}
	text := string(body)
	if json.Unmarshal(body, &msg) == nil && msg.Error != nil {
		text = msg.Error.Message
	} else {
		msg.Error = nil
	}
	e := &Error{Sent: true, Detail: strconv.Itoa(status) + " " + http.StatusText(status)}
	if text = clean(plain(text, header), secrets...); text != "" {
		e.Detail += ": " + text
	}
	if msg.Error != nil {
		e.code = msg.Error.Code
	}
	dispatched := msg.Error != nil && hasID(msg.ID) &&
		(msg.Error.Code == codeMethodNotFound || msg.Error.Code == codeInvalidParams)
	e.refused = !dispatched
	clientError := status >= 400 && status < 500 && status != http.StatusTooManyRequests

	switch {
	case hadSession && !dispatched && (status == http.StatusNotFound || status == http.StatusGone),
		hadSession && !dispatched && clientError && unknownSession.MatchString(blanks.Replace(text)):
		e.Class, e.Session = Expired, Gone
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		e.Class = Unauthorized
	case status == http.StatusTooManyRequests:
		e.Class, e.RetryAfter = RateLimited, retryAfter(header)
	case status >= 500 || status == http.StatusRequestTimeout:
		e.Class, e.RetryAfter = ServerError, retryAfter(header)
	case status == http.StatusNotFound && !dispatched:
		e.Class = Unavailable
		e.Detail += " (is the URL the server's MCP endpoint?)"
	case clientError:
		e.Class = Invalid
	default: // 1xx and 3xx have no business here
		e.Class = Protocol
	}
	return e
}

// plain drops what is no text for people: pages of a proxy.
func plain(body string, header http.Header) string {
	if strings.Contains(header.Get("Content-Type"), "html") {
		return ""
	}
	return body
}

// retryAfter returns the Retry-After of a response, or 0.
func retryAfter(header http.Header) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil && seconds > 0 {
		return time.Duration(min(seconds, 24*60*60)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at).Round(time.Second))
	}
	return 0
}
