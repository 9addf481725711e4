package lists

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/catalogue"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/interception"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/identity"
	"github.com/mcpactor/mcpactor/internal/introduction"
	"github.com/mcpactor/mcpactor/internal/listclass"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// interceptor is the innermost interceptor. It answers operations that may have a list of the catalogue, and passes on
// all others. It runs in the goroutine of the operation, so that who waits for a list has a deadline and can be cancelled.
type interceptor struct {
	cfg     *contract.Config
	mailbox *mailbox.Mailbox // of the registry
	next    actors.Runner
}

// From the goroutines of operations to the registry.
type (
	// listAsked asks the catalogue.
	listAsked struct {
		key      messages.Key
		method   string
		fresh    bool
		late     bool           // the answer says only whether the server is down
		asked    messages.Key   // that of the list for which another member asks, or zero
		alone    bool           // the session of another scope has failed to list: this scope lists itself
		of       *table.Server  // the server whose configuration has said what class is, or nil
		bind     *messages.Bind // the binding of the scope at that time
		class    string         // of the key
		declared string         // identifies what the scope declares, if it does: see [introduction.Declared]
		reply    chan<- listAnswer
	}
	// listFetched brings the end of a fetch.
	listFetched struct {
		fetch      *catalogue.Fetch
		generation uint64 // of the session that was listed on
		list       *catalogue.List
		failure    *messages.Failure
	}
)

// About says what is asked.
func (m *listAsked) About() string { return m.key.String() + " " + m.method + " " + m.class }

// About says what was listed.
func (m *listFetched) About() string { return m.fetch.On.String() + " " + m.fetch.Method() }

// listAnswer is the answer to a listAsked. It is zero if the registry does not take the operation.
type listAnswer struct {
	catalogue.Answer
	classOf *table.Server  // its configuration says the class of the key, which may take long: then ask again
	bind    *messages.Bind // of the scope
	down    *endpointDown  // the server is known to be down, or nil
	fails   bool           // the operation does not wait for it
	ask     bool           // another member may have the list
}

// endpointDown says why a server is down, and when it is probed next.
type endpointDown struct {
	cause *mcpbridge.Error
	next  time.Time
}

// run answers an operation from the catalogue, or passes it on. It may block until ctx ends.
func (i interceptor) run(ctx context.Context, op messages.Operation) (messages.Result, error) {
	asks, fresh := contract.AsksCatalogue(op)
	if !asks {
		return i.next(ctx, op)
	}
	q, again := listAsked{key: op.Head().Key.Normal(), method: op.Method(), fresh: fresh, asked: interception.AskedList(ctx)}, false
	for ctx.Err() == nil {
		switch a := i.ask(q); {
		case a.List != nil:
			return copyOf(a.List, a), nil
		case a.fails:
			return nil, a.down.failure(op)
		case a.classOf != nil:
			can, in := cmp.Or(a.bind.Capabilities, i.cfg.Capabilities), a.bind.Introduction
			q.of, q.bind, q.class = a.classOf, a.bind, listclass.Of(introduction.With(ctx, in), &a.classOf.Server, q.key, can)
			q.declared = introduction.Declared(identity.OfCapabilities(can), in)
		case a.Wait != nil:
			f := wait(ctx, a.Wait)
			if f == nil || isOfCaller(f.Code) || fresh && f.Code == messages.CodeUnavailable { // it may have waited for less long
				continue
			}
			if a.Wait.On == q.key || isOfServer(f.Code) {
				return nil, f
			}
		case a.Run != nil:
			if a.Run.Remember && i.remember(a.Run) {
				continue
			}
			result, err := i.list(ctx, op, a)
			own := a.Run.On == q.key
			if own && (err != nil || again || q.asked != (messages.Key{})) { // the generation is news to the member that has asked
				return result, err
			}
			again, q.alone = own, q.alone || err != nil // the catalogue has it, unless it has changed already
		case ctx.Err() == nil:
			return i.next(ctx, op)
		}
	}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, messages.NewFailure(op, messages.CodeCancelled, "the list has not come")
	}
	return nil, i.late(op, q)
}

// late returns the failure of an operation whose list has not come in time.
func (i interceptor) late(op messages.Operation, q listAsked) *messages.Failure {
	q.late = true
	down := i.ask(q).down
	if down == nil {
		return messages.NewFailure(op, messages.CodeDeadline, "the list has not come")
	}
	return down.failure(op)
}

// failure returns the failure of an operation that waits no longer.
func (d *endpointDown) failure(op messages.Operation) *messages.Failure {
	f := messages.NewFailure(op, messages.CodeUnavailable, d.cause.ForCaller())
	contract.RetryIn(f, time.Until(d.next))
	return f
}

// ask asks the catalogue. It waits for the answer even if the context of the operation has ended: if the answer is to run
// a fetch, others wait for that.
func (i interceptor) ask(q listAsked) listAnswer {
	reply := make(chan listAnswer, 1)
	q.reply = reply
	i.mailbox.PostUserMessage(&q)
	return <-reply
}

// wait waits for the end of another's fetch, and returns its failure.
func wait(ctx context.Context, fetch *catalogue.Fetch) *messages.Failure {
	select {
	case <-fetch.Done:
		return fetch.Failure
	case <-ctx.Done():
		return nil
	}
}

// list lists on the session that the catalogue has named, unless another member has the list, and reports the outcome.
func (i interceptor) list(ctx context.Context, op messages.Operation, a listAnswer) (messages.Result, error) {
	report := &listFetched{fetch: a.Run, failure: messages.NewFailure(op, messages.CodeInternal, "the listing panicked")}
	defer func() { i.mailbox.PostUserMessage(report) }()
	h := *op.Head()
	h.Key = a.Run.On
	result, err := i.fetch(ctx, messages.With(op, h), a)
	if err != nil {
		report.failure = failureOf(op, err)
		return nil, err
	}
	from := cmp.Or(*contract.ListingOf(result), &messages.Listing{At: time.Now()})
	report.failure, report.generation, report.list = nil, result.GetReceipt().Generation, catalogue.ListOf(result, from)
	return copyOf(report.list, listAnswer{Answer: catalogue.Answer{Until: report.list.Until}}), nil
}

// fetch asks the member that has the list, if that is another one, or else the server.
func (i interceptor) fetch(ctx context.Context, op messages.Operation, a listAnswer) (messages.Result, error) {
	if a.ask {
		result, err := i.next(interception.AskForList(ctx, a.Run.ListKey()), op)
		if err == nil || isOfServer(failureOf(op, err).Code) {
			return result, err
		}
	}
	return i.next(ctx, op)
}

// failureOf returns an error of an operation as a failure.
func failureOf(op messages.Operation, err error) (f *messages.Failure) {
	if !errors.As(err, &f) {
		f = messages.NewFailure(op, messages.CodeInternal, err.Error())
	}
	return f
}

// remember takes a list from the store, if there is one.
func (i interceptor) remember(fetch *catalogue.Fetch) bool {
	record := contract.KeyStore{Cfg: i.cfg, Key: fetch.ListKey()}.Load()
	if record == nil || len(record.List) == 0 {
		return false
	}
	list := catalogue.Decode(fetch.Method(), record.List)
	if list != nil {
		i.mailbox.PostUserMessage(&listFetched{fetch: fetch, list: list})
	}
	return list != nil
}

// copyOf returns a list for one asker.
func copyOf(list *catalogue.List, a listAnswer) messages.Result {
	return list.Copy(&messages.Listing{
		Server: list.Server, AsSent: messages.AsSent{Verbatim: list.Introduction}, At: list.At, Until: a.Until, Shared: a.Shared, Stale: a.Stale, Down: a.down != nil,
	})
}

// isOfCaller reports whether the failure of a fetch concerns only the one who ran it.
func isOfCaller(code messages.Code) bool {
	return code == messages.CodeCancelled || code == messages.CodeDeadline
}

// isOfServer reports whether the failure of a fetch is the same for all scopes of the class.
func isOfServer(code messages.Code) bool {
	return slices.Contains([]messages.Code{
		messages.CodeUnavailable, messages.CodeUnauthorized, messages.CodeServerError, messages.CodeProtocol, messages.CodeRateLimited, messages.CodeInvalid,
	}, code)
}
