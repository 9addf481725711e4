package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/internal/visible"
	"github.com/mcpactor/mcpactor/messages"
)

// Class says what became of a call, or of an attempt to dial.
type Class uint8

// The classes of an [Error].
const (
	// Lost: sent and not answered. The call may have run.
	Lost Class = iota
	// Expired: refused, because the server does not know the session. The call
	// did not run.
	Expired
	// NotSent: it never left. The call did not run.
	NotSent
	// Unavailable: dialing failed, and may work later.
	Unavailable
	// Invalid: the caller's mistake: refused by the server, or not marshalable.
	Invalid
	// Unauthorized: 401 or 403, or there are no credentials to send.
	Unauthorized
	// RateLimited: 429.
	RateLimited
	// ServerError: an answer that is an error of the server.
	ServerError
	// Protocol: the server's answer is no valid MCP.
	Protocol
	// Cancelled: the context was cancelled.
	Cancelled
	// Deadline: the context's deadline passed.
	Deadline
	// Refused: the server asked for something to go on with, and did not get it.
	Refused
	// Internal: a hook or this package panicked.
	Internal
)

var codes = [...]messages.Code{
	Lost: messages.CodeLost, Expired: messages.CodeExpired, NotSent: messages.CodeUnavailable,
	Unavailable: messages.CodeUnavailable, Invalid: messages.CodeInvalid, Unauthorized: messages.CodeUnauthorized,
	RateLimited: messages.CodeRateLimited, ServerError: messages.CodeServerError, Protocol: messages.CodeProtocol,
	Cancelled: messages.CodeCancelled, Deadline: messages.CodeDeadline, Refused: messages.CodeRefused,
	Internal: messages.CodeInternal,
}

// Code returns the failure code that callers get to see.
func (c Class) Code() messages.Code { return codes[c] }

// String returns the name of the class.
func (c Class) String() string {
	if c == NotSent {
		return "not_sent"
	}
	return string(codes[c])
}

// Fate says what became of a session.
type Fate uint8

// The fates of a session.
const (
	// Alive: it goes on.
	Alive Fate = iota
	// Gone: it expired: the server does not know it any more.
	Gone
	// Broken: its connection broke. Over HTTP the server may know it still.
	Broken
)

// Error is what went wrong, with what that means for the call and its session.
// Its text has no session ids, headers, arguments or control characters, and may
// be logged. [Error.ForCaller] may not.
type Error struct {
	// Class is what became of the call.
	Class Class
	// Session is what became of the session it ran on.
	Session Fate
	// Detail is the cause in words.
	Detail string
	// Sent is true when some of the request may have reached the server.
	Sent bool
	// RetryAfter is what the server asked for, or 0.
	RetryAfter time.Duration
	// Server is what a failed dial has shown of the server. It means nothing for
	// other errors.
	Server Presence
	// Err is the error behind it, where there is one.
	Err error

	words  string // of the server, for callers only: see ForCaller
	status int    // of HTTP; 200 also for an answer over another transport; 0: there was no answer
	code   int64  // of the JSON-RPC error that it was, or 0
	doubt  bool   // it may be about the session: see doubts

	credentials uint64 // stands for those that were refused, where they were
}

// Error returns the class and the detail.
func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Class.String()
	}
	return e.Class.String() + ": " + e.Detail
}

// ForCaller returns the detail for those whose call failed. When a stdio server
// ended, it has its last words as well: the end of what it wrote to stderr, or the
// output that made no sense. They may quote the arguments of calls, so they belong in
// no log line and no event.
func (e *Error) ForCaller() string {
	for from := e; ; {
		if from.words != "" {
			return e.Detail + ": " + from.words
		}
		if !errors.As(from.Err, &from) {
			return e.Detail
		}
	}
}

// MayHaveRun reports whether the call may have run, though it failed. A refusal of a
// session that lives proves nothing, unless its status or code says that the request was
// not carried out.
func (e *Error) MayHaveRun() bool {
	switch e.Class {
	case Lost:
		return true
	case Internal, Protocol, ServerError:
		return e.Sent
	case Invalid:
		return e.Sent && e.status >= 400 && !notCarriedOut[e.status] && !refusesTheRequest(e.code)
	}
	return false
}

// refusesTheRequest reports whether a JSON-RPC error is of what has read a request and
// found it wrong: the errors of the JSON-RPC specification but for the internal one.
func refusesTheRequest(code int64) bool {
	return -32700 <= code && code <= -32600 && code != codeInternalError
}

// notCarriedOut are the statuses by which a request is refused for what it is.
var notCarriedOut = map[int]bool{
	http.StatusMethodNotAllowed: true, http.StatusNotAcceptable: true, http.StatusLengthRequired: true,
	http.StatusRequestEntityTooLarge: true, http.StatusRequestURITooLong: true, http.StatusUnsupportedMediaType: true,
	http.StatusMisdirectedRequest: true, http.StatusUpgradeRequired: true, http.StatusRequestHeaderFieldsTooLarge: true,
}

// Unwrap returns the error behind it.
func (e *Error) Unwrap() error { return e.Err }

// AsError returns err as an [Error]. One of another type becomes [Lost] with a
// broken session, which is the safe thing to believe.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Class: Deadline, Sent: true, Err: err}
	case errors.Is(err, context.Canceled):
		return &Error{Class: Cancelled, Sent: true, Err: err}
	}
	return &Error{Class: Lost, Session: Broken, Sent: true, Detail: clean(err.Error()), Err: err}
}

// AsDialError is [AsError] for what a dial came to: there is no session that could
// be lost or expire, so the server is unavailable.
func AsDialError(err error) *Error {
	dial := *AsError(err)
	dial.Session = Alive
	switch dial.Class {
	case Cancelled, Deadline:
		return &Error{Class: Unavailable, Detail: "timed out while connecting", Err: err}
	case Lost, NotSent, Expired:
		dial.Class = Unavailable
	}
	return &dial
}

// said returns the text of a panic, in place of the detail, which may have half of a
// secret.
func (e *Error) said(secrets []string) string {
	said, _, _ := strings.Cut(e.Err.Error(), "\ngoroutine ")
	return clean(said, secrets...)
}

// quotations are where errors of the SDK begin to quote what a server has sent, and
// what to say in place of that.
var quotations = map[string]string{
	"malformed line in SSE stream":     "malformed line in its event stream",
	"missing endpoint: parse ":         "the endpoint that it names is malformed",
	"missing endpoint: first event is": "the first event does not name an endpoint",
	"registration response: ":          "registration response",
	"registration error response: ":    "registration error response",
	"registration failed with status":  "registration failed",
}

// describe returns the text of err without what must not be repeated: URLs,
// whose queries carry tokens, and the given secrets.
func describe(err error, secrets ...string) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	text := err.Error()
	for says, instead := range quotations {
		if before, _, quoted := strings.Cut(text, says); quoted {
			text = before + instead
		}
	}
	var grant *oauth2.RetrieveError
	if errors.As(err, &grant) { // it quotes the answer, too
		text = "the authorization server refuses: " + grant.ErrorCode
		if grant.ErrorCode == "" && grant.Response != nil {
			text += fmt.Sprintf("%d %s", grant.Response.StatusCode, http.StatusText(grant.Response.StatusCode))
		}
	}
	return clean(text, secrets...)
}

// maxDetail bounds what a server can put into an error text.
const maxDetail = 512

// clean makes text fit for a log line: one line of what is visible, valid UTF-8,
// bounded, secrets blacked out.
func clean(text string, secrets ...string) string {
	text = presentable(text, secrets...)
	if len(text) > maxDetail {
		text = strings.TrimSpace(strings.ToValidUTF8(text[:maxDetail], "")) + "…"
	}
	return text
}

// presentable is clean without the bound. Secrets are looked for again when what is not
// visible has gone: it may have stood between their letters.
func presentable(text string, secrets ...string) string {
	text = visible.Line(strings.ToValidUTF8(redact(text, secrets...), "�"))
	return strings.TrimSpace(redact(text, secrets...))
}

// redact blacks out secrets: the longest first, which may have others in them. Last
// comes the beginning of one at the end of the text, which whoever wrote it has cut.
func redact(text string, secrets ...string) string {
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "…")
		}
	}
	for _, s := range secrets {
		for n := min(len(s)-1, len(text)); n >= minSecret/2; n-- {
			if strings.HasSuffix(text, s[:n]) {
				return text[:len(text)-n] + "…"
			}
		}
	}
	return text
}

// minSecret is the length from which a configured value counts as a secret.
// Shorter ones, "1" or "true", would only garble what they are in.
const minSecret = 8

// addSecret appends a value and the words in it, as far as they count as secrets.
func addSecret(all []string, value string) []string {
	for _, v := range append([]string{value}, strings.Fields(value)...) {
		if len(v) >= minSecret {
			all = append(all, v)
		}
	}
	return all
}

// secretFlag finds the arguments of a command whose value is a secret.
var secretFlag = regexp.MustCompile(`(?i)token|secret|passw|api-?_?key|auth|credential|bearer`)

// textsIn returns the strings in decoded JSON.
func textsIn(value any) (texts []string) {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		for _, one := range v {
			texts = append(texts, textsIn(one)...)
		}
	case map[string]any:
		for _, one := range v {
			texts = append(texts, textsIn(one)...)
		}
	}
	return texts
}

// secrets returns what must not be repeated of a configuration: the values of
// headers, of the environment, of the arguments of set-up calls, and of those arguments
// of the command that are named like secrets; the words in them; and what [secretsOf]
// finds in the URL.
func (s *Server) secrets() []string {
	var all []string
	add := func(value string) { all = addSecret(all, value) }
	for _, value := range s.Headers {
		add(value)
	}
	for _, value := range s.Env {
		add(value)
	}
	for _, call := range s.Setup {
		data, _ := json.Marshal(call.Arguments) // what is no JSON is not sent either
		var arguments any
		json.Unmarshal(data, &arguments) //nolint:errcheck // as above
		for _, text := range textsIn(arguments) {
			add(text)
		}
	}
	for i, arg := range s.Args {
		name, value, given := strings.Cut(arg, "=")
		switch {
		case given && secretFlag.MatchString(name):
			add(value)
		case i > 0 && secretFlag.MatchString(s.Args[i-1]) && strings.HasPrefix(s.Args[i-1], "-"):
			add(arg)
		}
	}
	if u, err := url.Parse(s.URL); err == nil {
		all = append(all, secretsOf(u)...)
	}
	return all
}
