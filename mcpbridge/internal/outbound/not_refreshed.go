package outbound

import (
	"errors"
	"net/http"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// notRefreshed is the error of a request whose credentials were refused, and could not be refreshed.
type notRefreshed struct {
	error
	refusal *http.Response // whose body is in memory
}

// Unwrap returns the error of the refresh.
func (n *notRefreshed) Unwrap() error { return n.error }

// Ours returns an error of [Sender.Send] that is one of the bridge, or nil. If the server has refused credentials that could not be
// refreshed, the refusal may be about the session all the same: then judge says what it means, and the words are those of the
// refresh.
func Ours(err error, judge func(*http.Response) *mcpbridge.Error) *mcpbridge.Error {
	var ours *mcpbridge.Error
	if !errors.As(err, &ours) {
		return nil
	}
	refused, is := errors.AsType[*notRefreshed](err)
	if !is || ours.Class != mcpbridge.Unauthorized {
		return ours
	}
	e := judge(refused.refusal)
	e.Detail, e.Shared, e.Remedy = ours.Detail, ours.Shared, ours.Remedy
	if evidence, is := errors.AsType[*wire.Evidence](e.Err); is {
		evidence.Err = ours
	}
	return e
}
