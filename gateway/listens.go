package gateway

import (
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
)

// listens are the requests of one client for notifications (subscriptions/listen). Its methods may be called from any goroutine.
type listens struct {
	subscribing sync.Mutex // while subscriptions begin or end

	mu   sync.Mutex
	open []*listener
}

// listener is one of them, with what it gets.
type listener struct {
	r       *mcpserver.Request
	methods []string // the notifications of lists
	uris    []string // the resources
	begun   bool     // it was acknowledged
	held    []func() // send what came before that
}

// send sends a notification for a listen.
func (l *listener) send(to *mcpserver.Client, method string, params mcpserver.Object) {
	meta := mcpserver.ObjectOf(params["_meta"])
	meta[mcp.MetaKeySubscriptionID] = l.r.PublicID()
	to.Notify(method, params.With("_meta", meta), l.r)
}

// tell sends a notification to those that listen for it.
func (a *listens) tell(to *mcpserver.Client, method string, params any) {
	data, err := mcpserver.Encode(params)
	if err != nil {
		return
	}
	a.each(method, mcpserver.ObjectOf(data).Text("uri"), func(l *listener) { l.send(to, method, mcpserver.ObjectOf(data)) })
}

// each calls send for the listens that get a notification, which is for a resource if it has a URI. For those that are not acknowledged,
// that is left to begin.
func (a *listens) each(method, uri string, send func(*listener)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.open {
		isWanted := slices.Contains(l.methods, method) || method == "notifications/resources/updated" && slices.Contains(l.uris, uri)
		switch {
		case isWanted && l.begun:
			send(l)
		case isWanted:
			l.held = append(l.held, func() { send(l) })
		}
	}
}

func (a *listens) add(l *listener) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = append(a.open, l)
}

// begin acknowledges a listen, and sends what came before.
func (a *listens) begin(l *listener, acknowledge func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	acknowledge()
	for _, send := range l.held {
		send()
	}
	l.begun, l.held = true, nil
}

// watch adds a resource to what a listen gets.
func (a *listens) watch(l *listener, uri string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l.uris = append(l.uris, uri)
}

// unwatch removes it.
func (a *listens) unwatch(l *listener, uri string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l.uris = slices.DeleteFunc(l.uris, func(one string) bool { return one == uri })
}

// isWatched reports whether any listen gets a resource.
func (a *listens) isWatched(uri string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.open, func(l *listener) bool { return slices.Contains(l.uris, uri) })
}

func (a *listens) remove(l *listener) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = slices.DeleteFunc(a.open, func(one *listener) bool { return one == l })
}
