package outbound

import (
	"context"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// maxTurns bounds how many messages of a kind that nobody waits for one connection sends at a time:
// those to a server that hangs would hold an HTTP connection each.
const maxTurns = 16

// Turns gives turns to the messages of one kind that one connection sends. The zero value is ready
// for use, and its methods may be called from any goroutine.
type Turns struct {
	used  sync.Once
	turns chan struct{} // made with the first message: most sessions send none
}

// Wait waits for a turn, which ends with release.
func (t *Turns) Wait(ctx context.Context) (release func(), err error) {
	t.used.Do(func() { t.turns = make(chan struct{}, maxTurns) })
	select {
	case t.turns <- struct{}{}:
		return func() { <-t.turns }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Answer sends the answer to a request of the server, for [wire.AnswerTime] at most. What becomes of
// it is of no concern to the SDK, which could end the session.
func (t *Turns) Answer(req *http.Request, id jsonrpc.ID, asked *wire.Requests, send func(*http.Request) (*http.Response, error)) *http.Response {
	if asked.IsMark(id) {
		return Respond(req, http.StatusAccepted, "", nil)
	}
	taken, done := false, asked.Answering(id)
	defer func() { done(taken) }()
	ctx, cancel := context.WithTimeout(req.Context(), wire.AnswerTime)
	defer cancel()
	if release, err := t.Wait(ctx); err == nil {
		defer release()
		if resp, err := send(req.WithContext(ctx)); err == nil {
			resp.Body.Close()
			taken = true
		}
	}
	return Respond(req, http.StatusAccepted, "", nil)
}
