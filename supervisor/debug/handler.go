// Package debug serves a page that shows the sessions of a supervisor live: the health of each
// server, the state of each session, the recent events, and the timeline of one session. For a
// member of a cluster, it shows the sessions of all members. With ?format=json it serves the same data
// as JSON: snapshot, matching and events of all sessions, or key, session and events of one. Mount it
// like net/http/pprof:
//
//	h := debug.New(sup, debug.Config{})
//	defer h.Close()
//	mux.Handle("/debug/mcp/", h)
//
// The page is for operators. It has no authentication: serve it on a loopback address, or
// behind the authentication of your program. It shows the names of servers, scopes and tenants,
// and the causes of faults, but no session id, header, argument or result.
package debug

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// maxViewers is how many pages are updated live at once. Each page is rendered by itself, which
// takes tens of milliseconds a second with 10,000 sessions.
const maxViewers = 16

// Config is the configuration of a [Handler]. The zero value is useful.
type Config struct {
	// Actions adds forms that close a scope or a session, restart a session, and reset what is
	// known of a server. They are accepted by POST only, and not from pages of other sites.
	// Defaults to false: the page only shows.
	Actions bool
	// Hosts are the host names by which the page may be reached. localhost and IP addresses
	// are always accepted. All other names are refused, because another site could make its
	// own name resolve to the address of the page (DNS rebinding), and then read the page and
	// use its actions. Set it if people, or a proxy, reach the page by a name. Names are
	// compared without regard to case. Defaults to none.
	Hosts []string
}

// Source is what a page shows: a *[supervisor.Supervisor], or a Member of package
// cluster. The snapshots and the events of a Member are those of all members.
type Source interface {
	// Client returns a client that takes the snapshots and sends the actions.
	Client() *supervisor.Client
	// Subscribe has handle called with each event until cancel is called.
	Subscribe(handle func(messages.Event)) (cancel func())
}

// Handler serves the page of one supervisor or cluster. It is made by [New]. It may be mounted under
// any path that ends with a slash. Its methods may be called from any goroutine.
type Handler struct {
	source      Source
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

// New returns the handler for a supervisor or a member of a cluster. It keeps the last 1,000
// events until [Handler.Close]. It takes snapshots only while a page is open, at most one per second.
func New(source Source, cfg Config) *Handler {
	if source == nil {
		source = (*supervisor.Supervisor)(nil) // whose client says what is wrong
	}
	h := &Handler{source: source, cfg: cfg, guard: http.NewCrossOriginProtection(), events: &ring{}, viewers: make(chan struct{}, maxViewers)}
	h.closed, h.close = context.WithCancel(context.Background())
	h.snapshots = newSnapshots(h.closed, source)
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
	h.unsubscribe = source.Subscribe(h.events.add)
	return h
}

// Close ends the subscription to events and the live updates of open pages. Further requests
// are refused. It may be called more than once. Pass it to RegisterOnShutdown of the
// http.Server: otherwise Shutdown waits until all open pages are closed.
func (h *Handler) Close() {
	h.unsubscribe()
	h.close()
}

// ServeHTTP serves the page, what belongs to it, and the actions.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	found, ok := h.routes[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]
	switch {
	case !h.isNamed(hostOf(r.Host)):
		http.Error(w, "this host name is not accepted: use the IP address, or add the name to Hosts in the configuration of the page", http.StatusForbidden)
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

// isNamed reports whether the page may be reached by a host: no other site can make an IP
// address or localhost lead here. The address of the connection says nothing, since a proxy
// or the mapping of a container's port may stand before it.
func (h *Handler) isNamed(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || host == "localhost" || slices.ContainsFunc(h.cfg.Hosts, func(name string) bool { return name != "" && strings.EqualFold(name, host) })
}

// hostOf returns the host of an address with or without a port, in lower case.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	return strings.ToLower(strings.Trim(address, "[]"))
}
