package redact

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/internal/visible"
)

// quotations are the places where errors of the SDK begin to quote what a server has sent, and
// what to say in place of the quotation.
var quotations = map[string]string{
	"malformed line in SSE stream":     "malformed line in its event stream",
	"missing endpoint: parse ":         "the endpoint that it names is malformed",
	"missing endpoint: first event is": "the first event does not name an endpoint",
	"registration response: ":          "registration response",
	"registration error response: ":    "registration error response",
	"registration failed with status":  "registration failed",
}

// Describe returns the text of err without what must not be repeated: URLs,
// whose queries carry tokens, quotations of a server, and the given secrets.
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
	if errors.As(err, &grant) { // its text quotes the answer, too
		text = "the authorization server refuses: " + grant.ErrorCode
		if grant.ErrorCode == "" && grant.Response != nil {
			text += fmt.Sprintf("%d %s", grant.Response.StatusCode, http.StatusText(grant.Response.StatusCode))
		}
	}
	return Clean(text, secrets...)
}

// MaxDetail bounds how much of an error text a server can fill, in bytes.
const MaxDetail = visible.MaxDetail

// Clean makes a text fit for a log line: one line of what is visible, valid UTF-8,
// bounded, with secrets blacked out.
func Clean(text string, secrets ...string) string {
	return visible.Shorten(Line(text, secrets...))
}

// Line is [Clean] without the bound. It looks for secrets again when what is invisible
// is gone, which may have stood between their letters.
func Line(text string, secrets ...string) string {
	secrets = withForms(secrets)
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	text = visible.Line(strings.ToValidUTF8(redact(text, secrets), "�"))
	return strings.TrimSpace(redact(text, secrets))
}

// redact blacks out secrets, which come the longest first, since they may contain others. Then
// it blacks out the beginning of a secret at the end of the text, which whoever wrote the text
// has cut off.
func redact(text string, secrets []string) string {
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "…")
		}
	}
	for _, s := range secrets {
		for n := min(len(s)-1, len(text)); n >= MinSecret/2; n-- {
			if strings.HasSuffix(text, s[:n]) {
				return text[:len(text)-n] + "…"
			}
		}
	}
	return text
}
