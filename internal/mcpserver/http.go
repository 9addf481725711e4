package mcpserver

import (
	"crypto/rand"
	"crypto/subtle"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
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

	mu    sync.Mutex
	links map[string]*httpLink // by the id of the session
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
		defer l.use()()
		if r.Method == http.MethodDelete {
			e.end(l)
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
	ip := net.ParseIP(host)
	if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
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

// linkOf returns the client of a request. If there is none, it answers the request.
func (e *HTTP) linkOf(w http.ResponseWriter, r *http.Request) *httpLink {
	id := r.Header.Get(headerSession)
	if revision := r.Header.Get(headerRevision); revision != "" && !slices.Contains(Revisions, revision) {
		http.Error(w, headerRevision+": use one of "+strings.Join(Revisions, ", "), http.StatusBadRequest)
		return nil
	}
	e.mu.Lock()
	l := e.links[id]
	e.mu.Unlock()
	switch {
	case id == "":
		http.Error(w, headerSession+" is missing: send initialize first", http.StatusBadRequest)
	case l == nil:
		http.Error(w, "session not found", http.StatusNotFound)
	}
	return l
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
		l = e.open()
		w.Header().Set(headerSession, l.id)
	} else if err := refuseRevision(batch[0]); err != nil && r.Header.Get(headerSession) == "" && batch[0].isRequest() {
		writeMessage(w, http.StatusBadRequest, &Message{ID: batch[0].ID, Error: rpcError(err)})
		return
	} else if l = e.linkOf(w, r); l == nil {
		return
	}
	defer l.use()()
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

// open returns the link to a new client.
func (e *HTTP) open() *httpLink {
	l := &httpLink{id: rand.Text(), requests: map[string]*stream{}, streams: map[int]*stream{}}
	l.standalone = l.add(nil)
	l.c = newClient(l, e.Accept)
	l.idle = time.AfterFunc(idleTime, func() { e.end(l) })
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.links == nil {
		e.links = map[string]*httpLink{}
	}
	e.links[l.id] = l
	return l
}

// end ends a client, if nobody has.
func (e *HTTP) end(l *httpLink) {
	e.mu.Lock()
	its := e.links[l.id] == l
	delete(e.links, l.id)
	e.mu.Unlock()
	l.idle.Stop()
	if its {
		l.c.leave()
	}
}

// Close ends all clients, and returns when they have left.
func (e *HTTP) Close() {
	e.mu.Lock()
	links := slices.Collect(maps.Values(e.links))
	e.mu.Unlock()
	var left sync.WaitGroup
	for _, l := range links {
		left.Go(func() { e.end(l) })
	}
	left.Wait()
}

// httpLink is the link to a client over HTTP.
type httpLink struct {
	id   string
	c    *Client
	idle *time.Timer // ends the client

	mu         sync.Mutex
	used       int                // requests of the client that are open
	last       int                // the number of the last stream
	requests   map[string]*stream // of the requests that have no response, by their ids
	streams    map[int]*stream    // that can be resumed
	answered   []answered         // those of them that have all responses, the newest last
	size       int                // of these, in bytes
	standalone *stream            // of what belongs to no request
}

// use notes that the client is there, until it is called.
func (l *httpLink) use() (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used++
	l.idle.Stop()
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.used--; l.used == 0 && l.c.Context.Err() == nil {
			l.idle.Reset(idleTime)
		}
	}
}
