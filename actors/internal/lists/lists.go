// Package lists answers questions for lists of tools, prompts and resources from the catalogue. It fetches, saves and
// remembers them.
package lists

import (
	"context"
	"time"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/catalogue"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/jobs"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/actors/internal/member"
	"github.com/mcpactor/mcpactor/actors/internal/owners"
	"github.com/mcpactor/mcpactor/actors/internal/reports"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/listclass"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Lists answers operations from the catalogue, and tells it what becomes of sessions. Only the registry uses it, but for the
// Runners that [Lists.Interceptor] returns.
type Lists struct {
	With
	Catalogue *catalogue.Catalogue
}

// With is what lists need.
type With struct {
	Cfg     *contract.Config
	Mailbox *mailbox.Mailbox // of the registry
	Table   *table.Table
	Owners  *owners.Book
	Member  *member.Member
	Reports *reports.Reports
	Jobs    *jobs.Jobs
}

// New returns lists, of which none is known.
func New(with With) *Lists { return &Lists{with, catalogue.New()} }

// Interceptor returns the innermost interceptor, around the Runner that passes operations on.
func (l *Lists) Interceptor(next actors.Runner) actors.Runner {
	return interceptor{l.Cfg, l.Mailbox, next}.run
}

// Receive handles a message of an interceptor. It reports whether it was one.
func (l *Lists) Receive(msg any) bool {
	switch msg := msg.(type) {
	case *listAsked:
		l.onAsked(msg)
	case *listFetched:
		l.onFetched(msg)
	default:
		return false
	}
	return true
}

// Unread answers the question of a message that the registry had not read when it stopped. It reports whether it had one.
func (*Lists) Unread(msg any) bool {
	asked, is := msg.(*listAsked)
	if is {
		asked.reply <- listAnswer{}
	}
	return is
}

// onAsked answers a question to the catalogue.
func (l *Lists) onAsked(msg *listAsked) {
	srv := l.Table.Servers[msg.key.Server]
	if srv == nil || l.Table.Stopping {
		msg.reply <- listAnswer{}
		return
	}
	reg, bind, declared := l.Table.Current(msg.key), l.Owners.Binding(msg.key.Scope), l.Cfg.Declared
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
	q := catalogue.Question{Key: msg.key, Method: msg.method, Class: l.ClassOf(srv, reg, msg.key), Down: ep.Down, Fresh: msg.fresh}
	if !msg.alone {
		q.Idle = l.isIdle
	}
	if q.Class == "" {
		if msg.of != srv || msg.bind != bind {
			msg.reply <- listAnswer{classOf: srv, bind: bind}
			return
		}
		q.Class, declared = msg.class, msg.declared
	}
	if reg != nil {
		q.Of = &reg.Lists.Catalogue
		if reg.WasOpen && reg.Info.Declared != declared { // the scope was bound after the session was opened
			q.Class = listclass.Own(msg.key.Scope)
		}
	}
	if msg.asked != (messages.Key{}) && msg.asked != catalogue.ListKey(q.Key.Server, q.Class, q.Method) {
		msg.reply <- listAnswer{} // this member is configured in another way
		return
	}
	a := listAnswer{Answer: l.Catalogue.Ask(q, time.Now()), down: down}
	a.ask = a.Run != nil && msg.asked == (messages.Key{}) && a.Run.MayAsk() && !l.Member.Owns(a.Run.ListKey())
	a.fails = l.Cfg.FailFast && down != nil && a.Wait != nil && !msg.fresh
	msg.reply <- a
}

// isIdle reports whether the session of a key would list at once.
func (l *Lists) isIdle(key messages.Key) bool {
	reg := l.Table.Current(key)
	return reg != nil && reg.Outstanding == 0 && reg.IsHeard()
}

// ClassOf returns the class of a key, or "" if only code of the user can tell. reg is its session, or nil.
func (l *Lists) ClassOf(srv *table.Server, reg *table.Registration, key messages.Key) string {
	switch bind := l.Owners.Binding(key.Scope); {
	case srv.ListClass == nil && (reg != nil && reg.Lists.Own || bind.Handler != nil || bind.Subscriber != nil):
		return listclass.Own(key.Scope)
	case bind.Capabilities != nil, bind.Introduction != nil:
		return ""
	}
	return srv.Class
}

// onFetched notes the end of a fetch.
func (l *Lists) onFetched(msg *listFetched) {
	var of *catalogue.Session
	if reg := l.Table.Current(msg.fetch.On); reg != nil && reg.Generation == msg.generation {
		of = &reg.Lists.Catalogue
	}
	replaced, unsaved := l.Catalogue.Fetched(msg.fetch, of, msg.list, msg.failure, time.Now())
	if unsaved {
		l.save(msg.fetch, msg.list)
	}
	if replaced {
		stamp := messages.Stamp{Key: messages.Key{Server: msg.fetch.On.Server}, Time: time.Now(), Supervisor: l.Cfg.Name}
		l.Reports.Publish(&messages.CatalogueChanged{Stamp: stamp, Method: msg.fetch.Method()})
	}
}

// Changed notes that a server announces other lists.
func (l *Lists) Changed(reg *table.Registration, n messages.Notification) {
	for _, method := range listsOf(n) {
		l.Catalogue.Changed(&reg.Lists.Catalogue, l.ClassOf(reg.Server, reg, reg.Key), method)
	}
}

// listsOf returns the methods of the lists that a notification is about.
func listsOf(n messages.Notification) []string {
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

// Separate notes that a scope is bound, or is no longer bound. A session has lists of its own until it ends if its server
// may have asked a handler of the scope.
func (l *Lists) Separate(scope string, bind *messages.Bind) {
	own := bind.Handler != nil || bind.Subscriber != nil
	if !own && bind.Capabilities == nil && bind.Introduction == nil {
		return
	}
	var sessions []*catalogue.Session
	for _, reg := range l.Table.OfScope(scope) {
		reg.Lists.Own = reg.Lists.Own || own
		sessions = append(sessions, &reg.Lists.Catalogue)
	}
	l.Catalogue.Separate(time.Now(), scope, sessions...)
}

// Opened notes that a session has a connection.
func (l *Lists) Opened(reg *table.Registration) {
	l.Catalogue.Opened(&reg.Lists.Catalogue, reg.Key, l.ClassOf(reg.Server, reg, reg.Key), time.Now())
}

// Lost notes that a session has no connection.
func (l *Lists) Lost(reg *table.Registration) { l.Catalogue.Lost(&reg.Lists.Catalogue, time.Now()) }

// Closed notes that a session is closed.
func (l *Lists) Closed(reg *table.Registration) { l.Catalogue.Closed(&reg.Lists.Catalogue, time.Now()) }

// RootsSet notes that a scope has set the roots of one of its sessions, by which the server may list.
func (l *Lists) RootsSet(reg *table.Registration) {
	reg.Lists.Own = true
	l.Catalogue.Separate(time.Now(), reg.Key.Scope, &reg.Lists.Catalogue)
}

// save saves a list that scopes share.
func (l *Lists) save(of *catalogue.Fetch, list *catalogue.List) {
	if l.Cfg.Store == nil || l.Table.Stopping {
		return
	}
	l.Jobs.Await(func() (then func()) {
		key := of.ListKey()
		contract.KeyStore{Cfg: l.Cfg, Key: key}.Try("save a list", func(ctx context.Context) error {
			data, err := list.Encode()
			if err != nil {
				return err
			}
			return l.Cfg.Store.Save(ctx, key, &mcpbridge.Record{List: data})
		})
		return func() {}
	})
}
