package mcpserver

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// idleTime is how long a client over HTTP may be silent, without a stream. Many clients do not say that they leave.
const idleTime = 10 * time.Minute

// HTTP serves streamable HTTP to any number of clients. It is a [http.Handler]. Close it.
type HTTP struct {
	// Token is what requests carry as a bearer token, or empty: then everybody is served who reaches the handler, except for pages of
	// other sites.
	Token string
	// Certificates is true if a client certificate that the server has verified counts as the token. Without a Token, it is needed.
	Certificates bool
	// Hosts are the names by which clients reach the handler, besides localhost and IP addresses. All other names are refused: a page
	// could have its own name lead here (DNS rebinding).
	Hosts []string
	// Origins are those of pages that may be clients, such as "https://app.example.com", besides pages of the same host. Browsers are
	// told so (CORS).
	Origins []string
	// ClientHeader is the name of a header whose value tells clients of protocol 2026-07-28 apart that have the same token. Such clients
	// have no session, and nothing else in their requests says which of them a request is from. With "", those with the same token
	// are one client.
	ClientHeader string
	// Accept makes the handler of a client.
	Accept func(*Client) Handler
	// Return makes the handler of a client that has been away, perhaps since before this process started, or returns nil if
	// there is none with its ID. An error says that this is not known now. It may block. It may be nil: then nobody returns.
	Return func(*Client) (Handler, error)

	wrong wrongTokens

	mu     sync.Mutex
	links  map[string]*httpLink // by the id of the session
	closed bool
}

// isAllowed reports whether a request carries the token, or comes with a certificate that counts as one.
func (e *HTTP) isAllowed(r *http.Request) bool {
	if e.Certificates && r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return true
	}
	return e.Token == "" && !e.Certificates || e.hasToken(r)
}

// hasToken reports whether there is a token, and a request carries it.
func (e *HTTP) hasToken(r *http.Request) bool {
	return e.Token != "" && subtle.ConstantTimeCompare([]byte(givenToken(r)), []byte(e.Token)) == 1
}

// givenToken returns the token of a request: a bearer token, or a password, which browsers ask for.
func givenToken(r *http.Request) string {
	_, given, isBasic := r.BasicAuth()
	if !isBasic {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if strings.EqualFold(scheme, "Bearer") {
			given = token
		}
	}
	return given
}

// refuse answers a request that is not allowed. challenge says how the token may be given.
func (e *HTTP) refuse(w http.ResponseWriter, r *http.Request, challenge string) {
	if givenToken(r) != "" && !e.wrong.wait(r) {
		w.Header().Set("Connection", "close")
		w.Header().Set("Retry-After", strconv.Itoa(int(maxDelay.Seconds())))
		http.Error(w, "too many wrong tokens", http.StatusTooManyRequests)
		return
	}
	w.Header().Set("WWW-Authenticate", challenge)
	http.Error(w, "the token is missing or wrong: send the header Authorization: Bearer TOKEN", http.StatusUnauthorized)
}

// Guard returns a handler for pages that people see beside the endpoint. It asks for the token, too.
func (e *HTTP) Guard(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !e.isAllowed(r) {
			e.refuse(w, r, `Basic realm="mcpactor: any name, and the token as the password"`)
			return
		}
		pages.ServeHTTP(w, r)
	})
}

// linkOf returns the client of a request, which the caller uses until done. If there is none, it answers the request.
func (e *HTTP) linkOf(w http.ResponseWriter, r *http.Request) *httpLink {
	id := r.Header.Get(headerSession)
	if revision := r.Header.Get(headerRevision); revision != "" && !slices.Contains(Revisions, revision) {
		http.Error(w, headerRevision+": use one of "+strings.Join(Revisions, ", "), http.StatusBadRequest)
		return nil
	}
	if id == "" {
		http.Error(w, headerSession+" is missing: send initialize first", http.StatusBadRequest)
		return nil
	}
	l, err := e.find(id, nil)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case l == nil:
		http.Error(w, "session not found", http.StatusNotFound)
	}
	return l
}

// errClosed is the error for a request after Close.
var errClosed = errors.New("mcpactor is stopping")

// find returns the client with an id, or nil. The caller uses it until done. If there is none, and isNew is not nil, it is a new one,
// which isNew completes before its handler is made. One that is leaving is awaited: it may return.
func (e *HTTP) find(id string, isNew func(*Client)) (*httpLink, error) {
	for {
		e.mu.Lock()
		l := e.links[id]
		switch {
		case e.closed:
			e.mu.Unlock()
			return nil, errClosed
		case l == nil && isNew != nil:
			l = e.add(id, func(c *Client) Handler {
				isNew(c)
				return e.Accept(c)
			})
		case l == nil && e.Return == nil:
			e.mu.Unlock()
			return nil, nil
		case l == nil:
			l = e.add(id, func(c *Client) (h Handler) {
				h, l.failure = e.Return(c)
				return h
			})
		case l.ending:
			e.mu.Unlock()
			<-l.left
			continue
		}
		l.used++
		l.idle.Stop()
		e.mu.Unlock()
		if !l.isAccepted() {
			e.remove(l)
			return nil, l.failure
		}
		return l, nil
	}
}

// add adds the link to a client, for which accept makes the handler. The caller holds the mutex.
func (e *HTTP) add(id string, accept func(*Client) Handler) *httpLink {
	l := &httpLink{id: id, left: make(chan struct{}), names: rand.Text()[:10], requests: map[string]*stream{}, streams: map[string]*stream{}}
	l.standalone = l.add(nil)
	l.idle = time.AfterFunc(idleTime, func() { e.end(l, false) })
	l.isAccepted = sync.OnceValue(func() bool {
		l.c = newClient(l, id, accept)
		l.c.hold = func() func() { return e.use(l) }
		return l.c.handler != nil
	})
	if e.links == nil {
		e.links = map[string]*httpLink{}
	}
	e.links[id] = l
	return l
}

// use keeps a client as a request does, until release is called.
func (e *HTTP) use(l *httpLink) (release func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l.used++
	l.idle.Stop()
	return sync.OnceFunc(func() { e.done(l) })
}

// done notes that a request of a client is over.
func (e *HTTP) done(l *httpLink) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.used--; l.used == 0 && !l.ending {
		l.idle.Reset(idleTime)
	}
}

// end ends a client, if nobody has. Unless it is for good, the client may return, and is not ended while it is used.
func (e *HTTP) end(l *httpLink, forGood bool) {
	e.mu.Lock()
	ends := !l.ending && (forGood || l.used == 0)
	l.ending = l.ending || ends
	e.mu.Unlock()
	if !ends {
		return
	}
	if l.isAccepted() {
		l.c.leave(forGood)
	}
	e.remove(l)
}

// remove removes the link to a client that has left, or was not accepted.
func (e *HTTP) remove(l *httpLink) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l.idle.Stop()
	if e.links[l.id] == l {
		delete(e.links, l.id)
		close(l.left)
	}
}

// Close cuts off all clients, which may return to another process, and refuses others. Their handlers are not told. Requests that have no
// response get one that says so: not each client can ask for it later.
func (e *HTTP) Close() {
	e.mu.Lock()
	e.closed = true
	links := slices.Collect(maps.Values(e.links))
	for _, l := range links {
		l.ending = true
	}
	e.mu.Unlock()
	for _, l := range links {
		if l.isAccepted() {
			l.loseAll()
			l.c.end()
		}
		e.remove(l)
	}
}

// httpLink is the link to a client over HTTP.
type httpLink struct {
	id         string
	isAccepted func() bool   // makes the client, once, and reports whether there is one
	failure    error         // why there is none; set by isAccepted
	c          *Client       // set by isAccepted
	left       chan struct{} // closed when the client has ended

	// The mutex of HTTP guards these.

	used   int         // requests of the client that are open
	idle   *time.Timer // ends the client when it is not used
	ending bool        // it ends, or has ended

	mu         sync.Mutex
	names      string             // the names of streams begin with it
	last       int                // counts the streams
	requests   map[string]*stream // of the requests that have no response, by their ids
	streams    map[string]*stream // that can be resumed, by their names
	answered   []answered         // those of them that have all responses, the newest last
	size       int                // of these, in bytes
	standalone *stream            // of what belongs to no request
}
