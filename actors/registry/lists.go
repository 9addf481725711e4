package registry

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
		declared string         // see [mcpbridge.Declared], if the scope declares capabilities
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
			q.of, q.bind, q.class, q.declared = a.classOf, a.bind, a.classOf.ClassOf(ctx, q.key, can), mcpbridge.Declared(can)
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
	list := loadList(l.cfg, listing)
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

// onListAsked answers a question to the catalogue.
func (r *registry) onListAsked(msg *listAsked) {
	srv := r.table.Servers[msg.key.Server]
	if srv == nil || r.table.Stopping {
		msg.reply <- listAnswer{}
		return
	}
	reg, bind, declared := r.table.Current(msg.key), r.owners.Binding(msg.key.Scope), r.cfg.Declared
	ep, down := srv.Turns.Home.Endpoint, (*endpointDown)(nil)
	if reg != nil {
		ep = reg.Place.Endpoint
	}
	if ep.Down {
		down = &endpointDown{reg.CauseOf(ep), ep.Next}
	}
	if msg.late {
		msg.reply <- listAnswer{down: down}
		return
	}
	q := catalogue.Question{Key: msg.key, Method: msg.method, Class: r.classOf(srv, reg, msg.key), Down: ep.Down, Fresh: msg.fresh}
	if !msg.alone {
		q.Idle = r.isIdle
	}
	if q.Class == "" {
		if msg.of != srv || msg.bind != bind {
			msg.reply <- listAnswer{classOf: srv, bind: bind}
			return
		}
		q.Class, declared = msg.class, msg.declared
	}
	if reg != nil {
		q.Of = &reg.Lists
		if reg.WasOpen && reg.Info.Declared != declared { // the scope was bound after the session was opened
			q.Class = mcpbridge.OwnListClass(msg.key.Scope)
		}
	}
	if msg.asked != (messages.Key{}) && msg.asked != catalogue.ListKey(q.Key.Server, q.Class, q.Method) {
		msg.reply <- listAnswer{} // this member is configured in another way
		return
	}
	a := listAnswer{Answer: r.catalogue.Ask(q, time.Now()), down: down}
	a.ask = a.Run != nil && msg.asked == (messages.Key{}) && a.Run.MayAsk() && !r.owns(a.Run.ListKey())
	a.fails = r.cfg.FailFast && down != nil && a.Wait != nil && !msg.fresh
	msg.reply <- a
}

// isIdle reports whether the session of a key would list at once.
func (r *registry) isIdle(key messages.Key) bool {
	reg := r.table.Current(key)
	return reg != nil && reg.Outstanding == 0 && reg.IsHeard()
}

// classOf returns the class of a key, or "" if only code of the user can tell. reg is its session, or nil.
func (r *registry) classOf(srv *table.Server, reg *table.Registration, key messages.Key) string {
	switch bind := r.owners.Binding(key.Scope); {
	case srv.ListClass == nil && (reg != nil && reg.OwnLists || bind.Handler != nil || bind.Subscriber != nil):
		return mcpbridge.OwnListClass(key.Scope)
	case bind.Capabilities != nil:
		return ""
	}
	return srv.Class
}

// onListReturned notes the end of a listing.
func (r *registry) onListReturned(msg *listReturned) {
	var of *catalogue.Session
	if reg := r.table.Current(msg.listing.On); reg != nil && reg.Generation == msg.generation {
		of = &reg.Lists
	}
	replaced, unsaved := r.catalogue.Listed(msg.listing, of, msg.list, msg.failure, time.Now())
	if unsaved {
		r.saveList(msg.listing, msg.list)
	}
	if replaced {
		stamp := messages.Stamp{Key: messages.Key{Server: msg.listing.On.Server}, Time: time.Now(), Supervisor: r.cfg.Name}
		r.publish(&messages.CatalogueChanged{Stamp: stamp, Method: msg.listing.Method()})
	}
}

// noteChange notes that a server announces other lists.
func (r *registry) noteChange(reg *table.Registration, n messages.Notification) {
	for _, method := range listed(n) {
		r.catalogue.Changed(&reg.Lists, r.classOf(reg.Server, reg, reg.Key), method)
	}
}

// listed returns the methods of the lists that a notification is about.
func listed(n messages.Notification) []string {
	switch n.(type) {
	case *messages.ToolsChanged:
		return []string{"tools/list"}
	case *messages.PromptsChanged:
		return []string{"prompts/list"}
	case *messages.ResourcesChanged:
		return []string{"resources/list", "resources/templates/list"}
	}
	return nil
}
