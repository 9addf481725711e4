package lists

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors/internal/catalogue"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/messages"
)

// inbox is an actor that keeps what it reads.
type inbox chan any

func (b inbox) InvokeUserMessage(msg any) { b <- msg }
func (inbox) InvokeSystemMessage(any)     {}
func (inbox) EscalateFailure(_, _ any)    {}

// askForList has a lister ask the registry for a list. The operations that it passes on fail.
func askForList(ctx context.Context) (reads inbox, asked *listAsked) {
	reads, box := make(inbox, 1), new(mailbox.Mailbox)
	box.RegisterHandlers(reads, actor.NewDefaultDispatcher(1))
	l := interceptor{&contract.Config{}, box, func(_ context.Context, op messages.Operation) (messages.Result, error) {
		return nil, messages.NewFailure(op, messages.CodeCancelled, "")
	}}
	go l.run(ctx, &messages.ListTools{Header: messages.To("s", "a"), Shared: true})
	return reads, (<-reads).(*listAsked)
}

// Others wait for a list that the catalogue tells a caller to fetch, also if the caller has gone before it is told so.
func TestTheFetchingOfAListEndsAlsoIfItsCallerHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		reads, asked := askForList(ctx)
		cancel()
		synctest.Wait()
		a := catalogue.New().Ask(catalogue.Question{Key: asked.key, Method: asked.method, Class: "all"}, time.Now())
		require.NotNil(t, a.Run)
		asked.reply <- listAnswer{Answer: a}
		returned := (<-reads).(*listFetched)
		require.Same(t, a.Run, returned.fetch)
		require.NotNil(t, returned.failure)
	})
}

// Guarantee 3: a caller that gives up cancels nothing that others wait for, also others of its scope.
func TestACallerThatGivesUpDoesNotCancelTheListOfOthers(t *testing.T) {
	for _, code := range []messages.Code{messages.CodeCancelled, messages.CodeDeadline} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			reads, asked := askForList(ctx)
			other := &catalogue.Fetch{On: asked.key, Done: make(chan struct{}), Failure: &messages.Failure{Code: code}}
			close(other.Done)
			asked.reply <- listAnswer{Answer: catalogue.Answer{Wait: other}}
			again := (<-reads).(*listAsked)
			cancel()
			again.reply <- listAnswer{}
		})
	}
}
