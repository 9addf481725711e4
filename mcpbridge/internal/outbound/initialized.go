package outbound

import (
	"context"
	"net/http"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// initializedWait is how long the opening of a session waits until the server has accepted
// notifications/initialized. Some servers refuse calls before that.
const initializedWait = time.Second / 2

// initialized sends notifications/initialized, and answers the SDK. The result of the notification does
// not matter: the calls of the session show whether it works. After initializedWait the request
// continues until the session is cut.
func initialized(cut context.Context, req *http.Request, send func(*http.Request) error) *http.Response {
	life := wire.ForCaller(cut, req.Context())
	if !wire.MayRefresh(req.Context()) {
		life = wire.WithoutRefresh(life)
	}
	ctx, cancel := context.WithCancel(wire.NewExchange(life, nil, true))
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		send(req.WithContext(ctx)) //nolint:errcheck // see above
	}()
	select {
	case <-done:
	case <-time.After(initializedWait):
	case <-req.Context().Done():
		cancel() // nobody opens this session
	}
	return Respond(req, http.StatusAccepted, "", nil)
}
