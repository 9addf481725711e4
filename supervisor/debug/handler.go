// Package debug serves a page that shows the sessions of a supervisor while they run: the
// health of each server, the state of each session, the recent events, and the timeline of
// one session. The same data is there as JSON. Mount it like net/http/pprof:
//
//	h := debug.New(sup, debug.Config{})
//	defer h.Close()
//	mux.Handle("/debug/mcp/", h)
//
// The page is for operators. It has no authentication of its own: serve it on a loopback
// address, or behind the authentication of your program. It shows what [github.com/mcpactor/mcpactor/messages.Inspect]
// and the events of the supervisor contain: names of servers, scopes and tenants, and the
// causes of faults, but no session id, header, argument or result.
package debug

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/mcpactor/mcpactor/supervisor"
)

// maxViewers is how many pages are updated live at once.
const maxViewers = 64

// Config is the configuration of a [Handler]. The zero value is useful.
type Config struct {
	// Actions adds forms to the page, and accepts them: to close a scope or a session, to
	// restart a session, and to forget what is known of a server. They are taken by POST,
	// and not from pages of other sites. Defaults to false: the page only shows.
	Actions bool
	// Hosts are further host names that a request to a loopback address may name, such as
	// that of a proxy on the same machine that passes the name on. Other requests to a
	// loopback address must name it as localhost or by its address, so that no other site
	// can reach the page by a name that resolves to it. Defaults to none.
	Hosts []string
}

// Handler serves the page of one supervisor. It is made by [New]. It may be mounted under
// any path that ends with a slash. Its methods may be called from any goroutine.
type Handler struct {
	sup         *supervisor.Supervisor
	cfg         Config
	routes      map[string]route
	guard       *http.CrossOriginProtection
	snapshots   *snapshots
	events      *ring
	unsubscribe func()
	viewers     chan struct{} // has one value for each page that is updated
	closed      context.Context
	close       context.CancelFunc
}

// route is what the handler serves under one name: the last part of the path.
type route struct {
	method string
	serve  http.HandlerFunc
}

// New returns the handler for a supervisor. From now on, until [Handler.Close], it keeps the
// last 1,000 events of the supervisor. It takes snapshots only while
// somebody looks at the page, at most one per second.
func New(sup *supervisor.Supervisor, cfg Config) *Handler {
	h := &Handler{sup: sup, cfg: cfg, guard: http.NewCrossOriginProtection(), events: &ring{}, viewers: make(chan struct{}, maxViewers)}
	h.closed, h.close = context.WithCancel(context.Background())
	h.snapshots = newSnapshots(h.closed, sup)
	h.routes = map[string]route{
		"":             {http.MethodGet, h.serveIndex},
		"session":      {http.MethodGet, h.serveSession},
		"live":         {http.MethodGet, h.serveLiveIndex},
		"session-live": {http.MethodGet, h.serveLiveSession},
		"style.css":    {http.MethodGet, asset("style.css", "text/css; charset=utf-8")},
		"live.js":      {http.MethodGet, asset("live.js", "text/javascript; charset=utf-8")},
		"icon.svg":     {http.MethodGet, asset("icon.svg", "image/svg+xml")},
	}
	if cfg.Actions {
		for name, act := range actions {
			h.routes[name] = route{http.MethodPost, h.serveAction(act)}
		}
	}
	h.unsubscribe = sup.Subscribe(h.events.add)
	return h
}

// Close ends the subscription to events and the live updates of open pages. Further requests
// are refused. It may be called more than once. An http.Server whose Shutdown should not wait
// for open pages calls it by RegisterOnShutdown.
func (h *Handler) Close() {
	h.unsubscribe()
	h.close()
}

// ServeHTTP serves the page, what belongs to it, and the actions.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	found, ok := h.routes[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]
	switch {
	case !h.allows(r):
		http.Error(w, "this host name is not accepted on a loopback address: see Hosts in the configuration of the page", http.StatusForbidden)
	case h.closed.Err() != nil:
		http.Error(w, "the page is closed", http.StatusServiceUnavailable)
	case !ok:
		http.NotFound(w, r)
	case r.Method != found.method && (r.Method != http.MethodHead || found.method != http.MethodGet):
		w.Header().Set("Allow", found.method)
		http.Error(w, "use "+found.method, http.StatusMethodNotAllowed)
	default:
		if err := h.guard.Check(r); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		found.serve(w, r)
	}
}

// setHeaders sets the headers of every response. The page runs no script and loads nothing
// but the files of this package, whatever a name that it shows contains.
func setHeaders(header http.Header) {
	header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	// With no-referrer, browsers would send "Origin: null" with the forms of the page.
	header.Set("Referrer-Policy", "same-origin")
}

// allows reports whether a request is not one that another site sends by a name that it
// makes resolve to a loopback address (DNS rebinding).
func (h *Handler) allows(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || !isLoopback(hostOf(local.String())) {
		return true
	}
	host := hostOf(r.Host)
	return host == "localhost" || isLoopback(host) || slices.ContainsFunc(h.cfg.Hosts, func(name string) bool { return strings.EqualFold(name, host) })
}

// hostOf returns the host of an address with or without a port, in lower case.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	return strings.ToLower(strings.Trim(address, "[]"))
}

// isLoopback reports whether a host is a loopback address.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
