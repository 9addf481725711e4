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
	"github.com/mcpactor/mcpactor/internal/listclass"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// lister is the innermost interceptor. It answers questions to the catalogue, and passes everything else on. It runs
// in the goroutine of the operation, so that whoever waits for a list has a deadline and can be cancelled.
type lister struct {
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
		late     bool           // only say whether the server is down
		asked    messages.Key   // of the list that another member has asked for, or zero
		alone    bool           // not on the session of another scope, which has failed to list
		of       *table.Server  // whose configuration says what class is, or nil
		bind     *messages.Bind // the binding of the scope that said so
		class    string         // of the key
		declared string         // identifies the capabilities that the scope declares, if it does
		reply    chan<- listAnswer
	}
	// listReturned brings the end of a listing.
	listReturned struct {
		listing    *catalogue.Listing
		generation uint64 // of the session that was listed on
		list       *catalogue.List
		failure    *messages.Failure
	}
)

// About says what is asked.
func (m *listAsked) About() string { return m.key.String() + " " + m.method + " " + m.class }

// About says what was listed.
func (m *listReturned) About() string { return m.listing.On.String() + " " + m.listing.Method() }

// listAnswer is the answer to a listAsked. It is zero if the registry does not take the operation.
type listAnswer struct {
	catalogue.Answer
	classOf *table.Server  // find out the class of the key, which may take long, and ask again
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
func (l lister) run(ctx context.Context, op messages.Operation) (messages.Result, error) {
	asks, fresh := contract.AsksCatalogue(op)
	if !asks {
		return l.next(ctx, op)
	}
	q, again := listAsked{key: op.Head().Key.Normal(), method: op.Method(), fresh: fresh, asked: interception.AskedList(ctx)}, false
	for ctx.Err() == nil {
		switch a := l.ask(q); {
		case a.List != nil:
			return copyOf(a.List, a), nil
		case a.fails:
			return nil, a.down.failure(op)
		case a.classOf != nil:
			can := cmp.Or(a.bind.Capabilities, l.cfg.Capabilities)
			q.of, q.bind, q.class, q.declared = a.classOf, a.bind, listclass.Of(ctx, &a.classOf.Server, q.key, can), identity.OfCapabilities(can)
		case a.Wait != nil:
			f := wait(ctx, a.Wait)
			if f == nil || isOfCaller(f.Code) || fresh && f.Code == messages.CodeUnavailable { // it may have waited for less long
				continue
			}
			if a.Wait.On == q.key || isOfServer(f.Code) {
				return nil, f
			}
		case a.Run != nil:
			if a.Run.Remember && l.remember(a.Run) {
				continue
			}
			result, err := l.list(ctx, op, a)
			own := a.Run.On == q.key
			if own && (err != nil || again || q.asked != (messages.Key{})) { // the generation is news to the member that has asked
				return result, err
			}
			again, q.alone = own, q.alone || err != nil // the catalogue has it, unless it has changed already
		case ctx.Err() == nil:
			return l.next(ctx, op)
		}
	}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, messages.NewFailure(op, messages.CodeCancelled, "the list has not come")
	}
	return nil, l.late(op, q)
}

// late returns the failure of an operation whose list has not come in time.
func (l lister) late(op messages.Operation, q listAsked) *messages.Failure {
	q.late = true
	down := l.ask(q).down
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

// ask asks the catalogue. It waits for the answer even if the context of the operation has ended: others may wait for a
// list that the answer says to fetch.
func (l lister) ask(q listAsked) listAnswer {
	reply := make(chan listAnswer, 1)
	q.reply = reply
	l.mailbox.PostUserMessage(&q)
	return <-reply
}

// wait waits for the end of a listing of another, and returns its failure.
func wait(ctx context.Context, listing *catalogue.Listing) *messages.Failure {
	select {
	case <-listing.Done:
		return listing.Failure
	case <-ctx.Done():
		return nil
	}
}

// list lists on the session that the catalogue has named, unless another member has the list, and reports the outcome.
func (l lister) list(ctx context.Context, op messages.Operation, a listAnswer) (messages.Result, error) {
	report := &listReturned{listing: a.Run, failure: messages.NewFailure(op, messages.CodeInternal, "the listing panicked")}
	defer func() { l.mailbox.PostUserMessage(report) }()
	h := *op.Head()
	h.Key = a.Run.On
	result, err := l.fetch(ctx, messages.With(op, h), a)
	if err != nil {
		report.failure = failureOf(op, err)
		return nil, err
	}
	from := cmp.Or(*contract.ListingOf(result), &messages.Listing{At: time.Now()})
	report.failure, report.generation, report.list = nil, result.GetReceipt().Generation, catalogue.ListOf(result, from)
	return copyOf(report.list, listAnswer{Answer: catalogue.Answer{Until: report.list.Until}}), nil
}

// fetch asks the member that has the list, if that is another one, or else the server.
func (l lister) fetch(ctx context.Context, op messages.Operation, a listAnswer) (messages.Result, error) {
	if a.ask {
		result, err := l.next(interception.AskForList(ctx, a.Run.ListKey()), op)
		if err == nil || isOfServer(failureOf(op, err).Code) {
			return result, err
		}
	}
	return l.next(ctx, op)
}

// failureOf returns an error of an operation as a failure.
func failureOf(op messages.Operation, err error) (f *messages.Failure) {
	if !errors.As(err, &f) {
		f = messages.NewFailure(op, messages.CodeInternal, err.Error())
	}
	return f
}

// remember takes a list from the store, if there is one.
func (l lister) remember(listing *catalogue.Listing) bool {
	record := contract.KeyStore{Cfg: l.cfg, Key: listing.ListKey()}.Load()
	if record == nil || len(record.List) == 0 {
		return false
	}
	list := catalogue.Decode(listing.Method(), record.List)
	if list != nil {
		l.mailbox.PostUserMessage(&listReturned{listing: listing, list: list})
	}
	return list != nil
}

// copyOf returns a list for one asker.
func copyOf(list *catalogue.List, a listAnswer) messages.Result {
	return list.Copy(&messages.Listing{
		Server: list.Server, Verbatim: list.Introduction, At: list.At, Until: a.Until, Shared: a.Shared, Stale: a.Stale, Down: a.down != nil,
	})
}

// isOfCaller reports whether the failure of a listing is that of its caller alone.
func isOfCaller(code messages.Code) bool {
	return code == messages.CodeCancelled || code == messages.CodeDeadline
}

// isOfServer reports whether the failure of a listing for one scope is that for all of its class.
func isOfServer(code messages.Code) bool {
	return slices.Contains([]messages.Code{
		messages.CodeUnavailable, messages.CodeUnauthorized, messages.CodeServerError, messages.CodeProtocol, messages.CodeRateLimited, messages.CodeInvalid,
	}, code)
}
