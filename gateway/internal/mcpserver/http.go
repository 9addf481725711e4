package mcpserver

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcpactor/mcpactor/internal/loopback"
)

// idleTime is how long a client over HTTP may be silent, without a stream. Many clients do not say that they leave.
const idleTime = 10 * time.Minute

const headerSession, headerRevision = "Mcp-Session-Id", "Mcp-Protocol-Version"

// HTTP serves streamable HTTP to any number of clients on this machine. It is a [http.Handler]. Close it.
type HTTP struct {
	// Token is what requests carry as a bearer token, or empty.
	Token string
	// Accept makes the handler of a client.
	Accept func(*Client) Handler
	// Return makes the handler of a client that has been away, perhaps since before this process started, or returns nil if
	// there is none with its ID. An error says that this is not known now. It may block. It may be nil: then nobody returns.
	Return func(*Client) (Handler, error)

	mu     sync.Mutex
	links  map[string]*httpLink // by the id of the session
	closed bool
}

// ServeHTTP serves a request of a client on this machine.
func (e *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !isLocal(r):
		http.Error(w, "only programs on this machine may use it: the Host or the Origin is another", http.StatusForbidden)
	case !e.hasToken(r):
		refuseToken(w, "Bearer")
	case r.Method == http.MethodPost:
		e.post(w, r)
	case r.Method == http.MethodGet || r.Method == http.MethodDelete:
		l := e.linkOf(w, r)
		if l == nil {
			return
		}
		defer e.done(l)
		if r.Method == http.MethodDelete {
			e.end(l, true)
			return
		}
		s, next, err := l.resumed(r.Header.Get("Last-Event-ID"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.serve(w, r, l, next)
	default:
		w.Header().Set("Allow", "POST, GET, DELETE")
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// isLocal reports whether a request was sent to this machine by its name, and not by a page of another site: that keeps off
// pages whose name leads here.
func isLocal(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	if !loopback.Is(host) {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host
}

// hasToken reports whether a request carries the token: as a bearer token, or as a password, which browsers ask for.
func (e *HTTP) hasToken(r *http.Request) bool {
	_, given, isBasic := r.BasicAuth()
	if !isBasic {
		given, _ = strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	return e.Token == "" || subtle.ConstantTimeCompare([]byte(given), []byte(e.Token)) == 1
}

// refuseToken answers a request without the token. challenge says how it may be given.
func refuseToken(w http.ResponseWriter, challenge string) {
	w.Header().Set("WWW-Authenticate", challenge)
	http.Error(w, "the token is missing or wrong: send the header Authorization: Bearer TOKEN", http.StatusUnauthorized)
}

// Guard returns a handler for pages that people see beside the endpoint. It asks for the token, too.
func (e *HTTP) Guard(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !e.hasToken(r) {
			refuseToken(w, `Basic realm="mcpactor: any name, and the token as the password"`)
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
	l, err := e.find(id)
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

// find returns the client with an id, or nil. The caller uses it until done. Without an id, it is a new one. One that is leaving is
// awaited: it may return.
func (e *HTTP) find(id string) (*httpLink, error) {
	for {
		e.mu.Lock()
		l := e.links[id]
		switch {
		case e.closed:
			e.mu.Unlock()
			return nil, errClosed
		case id == "":
			l = e.add(rand.Text(), e.Accept)
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

// post takes the messages of a client, and answers its requests.
func (e *HTTP) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	if err != nil {
		writeMessage(w, http.StatusRequestEntityTooLarge, tooLong())
		return
	}
	batch, refused := decode(body)
	if len(batch) == 0 {
		writeMessage(w, http.StatusBadRequest, refused[0])
		return
	}
	var l *httpLink
	if len(batch) == 1 && batch[0].Method == "initialize" && batch[0].isRequest() && r.Header.Get(headerSession) == "" {
		if l, err = e.find(""); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set(headerSession, l.id)
	} else if err := refuseRevision(batch[0]); err != nil && r.Header.Get(headerSession) == "" && batch[0].isRequest() {
		writeMessage(w, http.StatusBadRequest, &Message{ID: batch[0].ID, Error: rpcError(err)})
		return
	} else if l = e.linkOf(w, r); l == nil {
		return
	}
	defer e.done(l)
	for _, m := range batch {
		if l.c.answersAnother(m) {
			refused = append(refused, unread(jsonrpc.CodeInvalidRequest, "the question is no longer open: mcpactor was restarted, or the client was away for long. The call that it was for may have run"))
		}
	}
	s, isNew := l.newStream(batch)
	if !isNew {
		writeMessage(w, http.StatusBadRequest, idInUse())
		return
	}
	if s != nil {
		for _, no := range refused {
			s.put(no)
		}
	}
	for _, m := range batch {
		l.c.receive(m)
	}
	switch {
	case s != nil:
		s.serve(w, r, l, 0)
	case len(refused) > 0:
		writeMessage(w, http.StatusBadRequest, refused[0])
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func writeMessage(w http.ResponseWriter, status int, m *Message) {
	data, err := m.encode()
	if err != nil {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(data) //nolint:errcheck // the client has gone then
}

// add adds the link to a client, for which accept makes the handler. The caller holds the mutex.
func (e *HTTP) add(id string, accept func(*Client) Handler) *httpLink {
	l := &httpLink{id: id, left: make(chan struct{}), names: rand.Text()[:10], requests: map[string]*stream{}, streams: map[string]*stream{}}
	l.standalone = l.add(nil)
	l.idle = time.AfterFunc(idleTime, func() { e.end(l, false) })
	l.isAccepted = sync.OnceValue(func() bool {
		l.c = newClient(l, id, accept)
		return l.c.handler != nil
	})
	if e.links == nil {
		e.links = map[string]*httpLink{}
	}
	e.links[id] = l
	return l
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
