package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"log"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/debug"
	"github.com/mcpactor/mcpactor/supervisor/health"
)

// PagePath is the path of the page of a [Web].
const PagePath = "/debug/mcp/"

// ProbePaths are the paths of the probes of a [Web]. The first two are the same: orchestrators use both names.
var ProbePaths = []string{"/livez", "/healthz", "/readyz"}

// Site is what a [Web] serves.
type Site struct {
	// Shown is what the page shows: a supervisor, or a member of a cluster.
	Shown debug.Source
	// Supervisor is that of the probes.
	Supervisor *supervisor.Supervisor
	// Actions is true if the page may close and restart sessions, which it may not if other machines may reach it.
	Actions bool
	// Hosts are the names by which browsers reach the page, besides localhost, IP addresses, and the name that it listens at.
	Hosts []string
	// TLS has the certificate. With nil, the server speaks plain HTTP.
	TLS *tls.Config
	// Log gets what goes wrong in requests.
	Log zerolog.Logger
	// Around returns the handler for all requests, which gets those of the page and the probes. With nil, it is that handler.
	Around func(pages http.Handler) http.Handler
}

// Web is an HTTP server for people and orchestrators: the page that shows the sessions of a supervisor, and the probes /livez, which is
// also /healthz, and /readyz.
type Web struct {
	// URL is the address of the page.
	URL string
	// Public is true if other machines may reach it.
	Public bool

	server *http.Server
	ended  chan struct{}
}

// uploadTime bounds the time in which a request is read, whose body may be large and come over a slow network.
const uploadTime = time.Minute

// Serve serves a site at an address such as "127.0.0.1:8080". The caller closes it.
func Serve(addr string, site Site) (*Web, error) {
	l, err := listen(addr)
	if err != nil {
		return nil, err
	}
	at := l.Addr().(*net.TCPAddr)
	named, _, _ := net.SplitHostPort(addr) // listen has accepted it
	w := &Web{URL: urlOf(named, at, site.TLS != nil), Public: !at.IP.IsLoopback(), ended: make(chan struct{})}
	page := debug.New(site.Shown, debug.Config{Actions: site.Actions && !w.Public, Hosts: append([]string{named}, site.Hosts...)})
	mux := http.NewServeMux()
	mux.Handle(PagePath, page)
	live := health.Live(site.Supervisor)
	mux.Handle("/livez", live)
	mux.Handle("/healthz", live)
	mux.Handle("/readyz", health.Ready(site.Supervisor))
	mux.Handle("GET /{$}", http.RedirectHandler(PagePath, http.StatusFound))
	handler := http.Handler(mux)
	if site.Around != nil {
		handler = site.Around(mux)
	}
	w.server = &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: uploadTime, TLSConfig: site.TLS}
	w.server.ErrorLog = log.New(&faults{site.Log}, "", 0)
	w.server.RegisterOnShutdown(page.Close)
	serve := w.server.Serve
	if site.TLS != nil {
		serve = func(l net.Listener) error { return w.server.ServeTLS(l, "", "") }
	}
	go func() {
		defer close(w.ended)
		serve(l) //nolint:errcheck // it returns an error when it is closed
	}()
	return w, nil
}

// faults logs what goes wrong in an HTTP server. Whoever tries the port without TLS causes an error.
type faults struct{ log zerolog.Logger }

func (f *faults) Write(line []byte) (int, error) {
	level := zerolog.ErrorLevel
	if bytes.Contains(line, []byte("TLS handshake error")) {
		level = zerolog.DebugLevel
	}
	f.log.WithLevel(level).Msg(string(bytes.TrimSpace(line)))
	return len(line), nil
}

// urlOf returns the address of the page for a browser on this machine. named is the host that the user has given.
func urlOf(named string, at *net.TCPAddr, secure bool) string {
	u := url.URL{Scheme: "http", Path: PagePath}
	if secure {
		u.Scheme = "https"
	}
	switch {
	case at.IP.IsUnspecified():
		named = "localhost"
	case named == "" || net.ParseIP(named) != nil:
		named = at.IP.String()
	}
	u.Host = net.JoinHostPort(named, strconv.Itoa(at.Port))
	return u.String()
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
