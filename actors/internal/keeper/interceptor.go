package keeper

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/handles"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/messages"
)

// interceptor is about calls of servers that declare handles. It runs in the goroutine of an operation.
type interceptor struct {
	mailbox *mailbox.Mailbox // of the registry
	store   store
	next    actors.Runner
}

// declaredKey is the key of the kinds of all servers in the context of an operation.
type declaredKey struct{}

// PrivateKey keeps it from operations that an interceptor causes.
func (declaredKey) PrivateKey() {}

// run runs an operation.
func (i interceptor) run(ctx context.Context, op messages.Operation) (messages.Result, error) {
	call, is := op.(*messages.CallTool)
	declared, _ := ctx.Value(declaredKey{}).(map[string]handles.Kinds)
	if !is || call.Params == nil || declared[call.Key.Normal().Server] == nil {
		return i.next(ctx, op)
	}
	return i.use(ctx, call, declared[call.Key.Normal().Server])
}

// use runs a call, which may have handles as arguments.
func (i interceptor) use(ctx context.Context, call *messages.CallTool, kinds handles.Kinds) (messages.Result, error) {
	reply := make(chan begun, 1)
	i.mailbox.PostUserMessage(&useBegun{call, kinds.Given(call.Params), reply})
	b := <-reply
	if b.stale {
		return nil, messages.NewFailure(call, messages.CodeInvalid, "the handle is no more, and another one may have its id by now")
	}
	ended := &useEnded{of: b.uses, answers: make([]*handles.Answer, len(b.uses)), mayHaveRun: true}
	if len(b.uses) > 0 {
		defer func() { i.mailbox.PostUserMessage(ended) }() // also if next panics
	}
	result, err := i.mint(ctx, call, kinds.Minting(call.Params.Name))
	if r, is := result.(*messages.ToolResult); is && err == nil {
		for n, u := range b.uses {
			said := u.Kind.Used(r.Result, u.Releases)
			ended.answers[n] = &said
		}
	}
	ended.mayHaveRun = mayHaveRun(err)
	return result, err
}

// mayHaveRun reports whether a call that has failed may have run.
func mayHaveRun(err error) bool {
	f, is := errors.AsType[*messages.Failure](err)
	return !is || f == nil || f.MayHaveRun
}

// mint runs a call that mints a handle of a kind, in its turn, or any other one if kind is nil.
func (i interceptor) mint(ctx context.Context, call *messages.CallTool, kind *handles.Kind) (messages.Result, error) {
	if kind == nil {
		return i.next(ctx, call)
	}
	key := call.Key.Normal()
	m := &minting{call: call, mailbox: i.mailbox, store: i.store, turn: make(chan messages.Code, 1)}
	m.Mint = &handles.Mint{Kind: kind, By: key, Holder: handles.HolderOf(call), Record: recordkey.Handle(key, rand.Text()), Ticket: m}
	i.mailbox.PostUserMessage(&mintAsked{m})
	failed := &mintFailed{of: m, mayHaveMinted: true}
	defer func() { i.mailbox.PostUserMessage(failed) }() // it says nothing new if the answer has come
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if !call.WaitUntil.IsZero() {
		waiting, cancel = context.WithDeadline(ctx, call.WaitUntil)
	}
	defer cancel()
	for {
		select {
		case refused := <-m.turn:
			if refused != granted {
				failed.mayHaveMinted = false
				return nil, messages.NewFailure(call, refused, refusals[refused]+kind.Mint)
			}
		case <-waiting.Done():
			failed.mayHaveMinted = false
			return nil, tooLate(waiting, call, kind)
		}
		result, err := i.next(contract.WithMint(ctx, m), call)
		if r, is := result.(*messages.ToolResult); is && err == nil && kind.Minted(r.Result).Full {
			continue // it waits again
		}
		failed.mayHaveMinted = mayHaveRun(err)
		return result, err
	}
}

// tooLate returns the failure of a mint whose turn has not come in time.
func tooLate(ctx context.Context, call *messages.CallTool, kind *handles.Kind) *messages.Failure {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return messages.NewFailure(call, messages.CodeCancelled, "")
	}
	return messages.NewFailure(call, messages.CodeBusy, "no handle of "+kind.Mint+" was released in time")
}
