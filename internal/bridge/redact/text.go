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
	if errors.As(err, &grant) { // it quotes the answer, too
		text = "the authorization server refuses: " + grant.ErrorCode
		if grant.ErrorCode == "" && grant.Response != nil {
			text += fmt.Sprintf("%d %s", grant.Response.StatusCode, http.StatusText(grant.Response.StatusCode))
		}
	}
	return Clean(text, secrets...)
}

// maxDetail bounds what a server can put into an error text.
const MaxDetail = visible.MaxDetail

// clean makes text fit for a log line: one line of what is visible, valid UTF-8,
// bounded, secrets blacked out.
func Clean(text string, secrets ...string) string {
	return visible.Shorten(Line(text, secrets...))
}

// presentable is clean without the bound. Secrets are looked for again when what is not
// visible has gone: it may have stood between their letters.
func Line(text string, secrets ...string) string {
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
		for n := min(len(s)-1, len(text)); n >= MinSecret/2; n-- {
			if strings.HasSuffix(text, s[:n]) {
				return text[:len(text)-n] + "…"
			}
		}
	}
	return text
}
