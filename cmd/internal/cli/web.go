package cli

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/debug"
	"github.com/mcpactor/mcpactor/supervisor/health"
)

// PagePath is the path of the page of a [Web].
const PagePath = "/debug/mcp/"

// Web is an HTTP server for people and orchestrators: the page that shows the sessions of a
// supervisor, and the probes /livez and /readyz.
type Web struct {
	// URL is the address of the page.
	URL string
	// Public is true if other machines may reach it.
	Public bool

	server *http.Server
	ended  chan struct{}
}

// Serve starts the server on an address such as "127.0.0.1:8080". The page shows shown, a
// supervisor or a member of a cluster, and the probes are those of sup. actions says whether the
// page may close and restart sessions, which it may not if other machines may reach it. Besides IP
// addresses and localhost, browsers reach the page by the host name in addr only. around returns
// the handler for all requests, which gets those of the page and the probes, or is nil. The caller closes it.
func Serve(addr string, shown debug.Source, sup *supervisor.Supervisor, actions bool, around func(pages http.Handler) http.Handler) (*Web, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, Usagef("--listen: %w", err)
	}
	public := !l.Addr().(*net.TCPAddr).IP.IsLoopback()
	named, _, _ := net.SplitHostPort(addr) // Listen has accepted it
	page := debug.New(shown, debug.Config{Actions: actions && !public, Hosts: []string{named}})
	mux := http.NewServeMux()
	mux.Handle(PagePath, page)
	mux.Handle("/livez", health.Live(sup))
	mux.Handle("/readyz", health.Ready(sup))
	mux.Handle("GET /{$}", http.RedirectHandler(PagePath, http.StatusFound))
	handler := http.Handler(mux)
	if around != nil {
		handler = around(mux)
	}
	w := &Web{Public: public, server: &http.Server{Handler: handler, ReadTimeout: 5 * time.Second}, ended: make(chan struct{})}
	w.server.RegisterOnShutdown(page.Close)
	at := l.Addr().(*net.TCPAddr)
	host := at.String()
	if at.IP.IsUnspecified() {
		_, port, _ := net.SplitHostPort(host)
		host = net.JoinHostPort("localhost", port)
	}
	w.URL = "http://" + host + PagePath
	go func() {
		defer close(w.ended)
		w.server.Serve(l) //nolint:errcheck // it returns an error when it is closed
	}()
	return w, nil
}

// Close ends the server. Requests have a second, and are cut off then. It does nothing on a
// nil Web.
func (w *Web) Close() {
	if w == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if w.server.Shutdown(ctx) != nil {
		w.server.Close()
	}
	<-w.ended
}
