// Package lists answers questions for lists of tools, prompts and resources from the catalogue. It fetches, saves and
// remembers them.
package lists

import (
	"context"
	"time"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/catalogue"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/actors/internal/owners"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/listclass"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Lists answers operations from the catalogue, and tells it what becomes of sessions. Only the registry uses it; the Runners that
// [Lists.Lister] returns run elsewhere.
type Lists struct {
	Cfg       *contract.Config
	Mailbox   *mailbox.Mailbox // of the registry
	Table     *table.Table
	Owners    *owners.Book
	Catalogue *catalogue.Catalogue
	Do        Do
}

// Do is what the registry does for lists.
type Do struct {
	Owns    func(key messages.Key) bool // reports whether this member owns a key
	Publish func(messages.Event)
	Await   func(work func() (then func())) // works in another goroutine; the registry stops after it
}

// Lister returns the innermost interceptor, around the Runner that passes operations on.
func (l *Lists) Lister(next actors.Runner) actors.Runner { return lister{l.Cfg, l.Mailbox, next}.run }

// Receive handles a message of a lister. It reports whether it was one.
func (l *Lists) Receive(msg any) bool {
	switch msg := msg.(type) {
	case *listAsked:
		l.onAsked(msg)
	case *listReturned:
		l.onReturned(msg)
	default:
		return false
	}
	return true
}

// Unread answers a message of a lister that the registry has not read before it stopped. It reports whether it was one.
func (l *Lists) Unread(msg any) bool {
	switch msg := msg.(type) {
	case *listAsked:
		msg.reply <- listAnswer{}
	case *listReturned:
	default:
		return false
	}
	return true
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
		q.Of = &reg.Lists
		if reg.WasOpen && reg.Info.Declared != declared { // the scope was bound after the session was opened
			q.Class = listclass.Own(msg.key.Scope)
		}
	}
	if msg.asked != (messages.Key{}) && msg.asked != catalogue.ListKey(q.Key.Server, q.Class, q.Method) {
		msg.reply <- listAnswer{} // this member is configured in another way
		return
	}
	a := listAnswer{Answer: l.Catalogue.Ask(q, time.Now()), down: down}
	a.ask = a.Run != nil && msg.asked == (messages.Key{}) && a.Run.MayAsk() && !l.Do.Owns(a.Run.ListKey())
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
	case srv.ListClass == nil && (reg != nil && reg.OwnLists || bind.Handler != nil || bind.Subscriber != nil):
		return listclass.Own(key.Scope)
	case bind.Capabilities != nil:
		return ""
	}
	return srv.Class
}

// onReturned notes the end of a listing.
func (l *Lists) onReturned(msg *listReturned) {
	var of *catalogue.Session
	if reg := l.Table.Current(msg.listing.On); reg != nil && reg.Generation == msg.generation {
		of = &reg.Lists
	}
	replaced, unsaved := l.Catalogue.Listed(msg.listing, of, msg.list, msg.failure, time.Now())
	if unsaved {
		l.save(msg.listing, msg.list)
	}
	if replaced {
		stamp := messages.Stamp{Key: messages.Key{Server: msg.listing.On.Server}, Time: time.Now(), Supervisor: l.Cfg.Name}
		l.Do.Publish(&messages.CatalogueChanged{Stamp: stamp, Method: msg.listing.Method()})
	}
}

// Changed notes that a server announces other lists.
func (l *Lists) Changed(reg *table.Registration, n messages.Notification) {
	for _, method := range listedBy(n) {
		l.Catalogue.Changed(&reg.Lists, l.ClassOf(reg.Server, reg, reg.Key), method)
	}
}

// listedBy returns the methods of the lists that a notification is about.
func listedBy(n messages.Notification) []string {
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

// Separate notes that a scope is bound, or is not any more. A session whose server may have asked a handler of the
// scope has lists of its own until it ends.
func (l *Lists) Separate(scope string, bind *messages.Bind) {
	own := bind.Handler != nil || bind.Subscriber != nil
	if !own && bind.Capabilities == nil {
		return
	}
	var sessions []*catalogue.Session
	for _, reg := range l.Table.OfScope(scope) {
		reg.OwnLists = reg.OwnLists || own
		sessions = append(sessions, &reg.Lists)
	}
	l.Catalogue.Separate(time.Now(), scope, sessions...)
}

// Closed notes that a session is closed.
func (l *Lists) Closed(reg *table.Registration) { l.Catalogue.Closed(&reg.Lists, time.Now()) }

// RootsSet notes that a scope has set what the server of one of its sessions may list by.
func (l *Lists) RootsSet(reg *table.Registration) {
	reg.OwnLists = true
	l.Catalogue.Separate(time.Now(), reg.Key.Scope, &reg.Lists)
}

// SetState notes the state of a session: it has lists while it has a connection.
func (l *Lists) SetState(reg *table.Registration, state messages.State) {
	l.Table.SetState(reg, state)
	if state == messages.StateReady {
		l.Catalogue.Opened(&reg.Lists, reg.Key, l.ClassOf(reg.Server, reg, reg.Key), time.Now())
	} else {
		l.Catalogue.Lost(&reg.Lists, time.Now())
	}
}

// save saves a list that scopes share.
func (l *Lists) save(of *catalogue.Listing, list *catalogue.List) {
	if l.Cfg.Store == nil || l.Table.Stopping {
		return
	}
	l.Do.Await(func() (then func()) {
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
