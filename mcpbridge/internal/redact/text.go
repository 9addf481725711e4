package redact

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/internal/visible"
)

// quotations maps the texts after which errors of the SDK quote what a server has sent to the texts that replace the
// quotations.
var quotations = map[string]string{
	"malformed line in SSE stream":     "malformed line in its event stream",
	"missing endpoint: parse ":         "the endpoint that it names is malformed",
	"missing endpoint: first event is": "the first event does not name an endpoint",
	"registration response: ":          "registration response",
	"registration error response: ":    "registration error response",
	"registration failed with status":  "registration failed",
}

// Describe returns the text of err without URLs, whose queries may contain tokens, without quotations of a
// server, and without the given secrets.
func Describe(err error, secrets ...string) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	text := err.Error()
	var panicked *guard.Panic
	if errors.As(err, &panicked) {
		text = "internal: " + panicked.Brief()
	}
	for says, instead := range quotations {
		if before, _, quoted := strings.Cut(text, says); quoted {
			text = before + instead
		}
	}
	var grant *oauth2.RetrieveError
	if errors.As(err, &grant) { // its text quotes the answer of the authorization server
		text = "the authorization server refuses: " + grant.ErrorCode
		if grant.ErrorCode == "" && grant.Response != nil {
			text += fmt.Sprintf("%d %s", grant.Response.StatusCode, http.StatusText(grant.Response.StatusCode))
		}
	}
	return Clean(text, secrets...)
}

// MaxDetail bounds how much of an error text a server can fill, in bytes.
const MaxDetail = visible.MaxDetail

// maxText is how much of a text is read, in bytes. It is larger than [MaxDetail], because a text becomes shorter when its
// secrets are blacked out.
const maxText = 16 * MaxDetail

// Clean makes a text fit for a log line: one line of visible characters in valid UTF-8, not longer than [MaxDetail], with
// secrets blacked out.
func Clean(text string, secrets ...string) string {
	if len(text) <= maxText {
		return visible.Shorten(Line(text, secrets...))
	}
	end := maxText
	for !utf8.RuneStart(text[end]) && end > maxText-utf8.UTFMax { // with half a character at the end, the beginning of a secret would not be found
		end--
	}
	return visible.Shorten(strings.TrimSuffix(Line(text[:end], secrets...), "…") + "…")
}

// Line is [Clean] without a bound.
func Line(text string, secrets ...string) string {
	return strings.TrimSpace(blackOut(visible.Line(strings.ToValidUTF8(text, "�")), secrets))
}

// Lines is [Line] with the line breaks of the text, over which a secret may extend.
func Lines(text string, secrets ...string) string {
	return blackOut(visible.Text(strings.ToValidUTF8(text, "�")), secrets)
}
