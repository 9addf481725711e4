package mcpserver

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ServeHTTP serves a request of a client.
func (e *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if shareWith(w, r, e.Origins) {
		return
	}
	if err := checkNames(r, e.Hosts, e.Origins); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	switch {
	case !e.isAllowed(r):
		e.refuse(w, r, "Bearer")
	case r.Method == http.MethodPost:
		e.post(w, r)
	case r.Header.Get(headerRevision) == Stateless || r.Method != http.MethodGet && r.Method != http.MethodDelete:
		w.Header().Set("Allow", "POST, GET, DELETE")
		w.WriteHeader(http.StatusMethodNotAllowed)
	default:
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
	scope := r.URL.Query().Get("scope")
	if scope != "" && !e.hasToken(r) { // anybody could ask for the sessions of others
		http.Error(w, "scope: needs the token: start mcpactor serve with MCPACTOR_SERVE_TOKEN, and send it", http.StatusForbidden)
		return
	}
	if isStatelessPost(r, batch) {
		e.postStateless(w, r, append(batch, refused...), scope)
		return
	}
	var l *httpLink
	if len(batch) == 1 && batch[0].Method == "initialize" && batch[0].isRequest() && r.Header.Get(headerSession) == "" {
		if l, err = e.find(rand.Text(), func(c *Client) { c.Scope = scope }); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set(headerSession, l.id)
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

// isStatelessPost reports whether the messages of a POST are of the stateless revision, or of one that is not known.
func isStatelessPost(r *http.Request, batch []*Message) bool {
	if slices.ContainsFunc(batch, func(m *Message) bool { return m.Method != "" && m.IsStateless() }) {
		return true
	}
	revision := r.Header.Get(headerRevision)
	return revision > Revisions[0] && r.Header.Get(headerSession) == "" && batch[0].Method != "initialize"
}

// postStateless answers a stateless request. The end of the connection cancels it.
func (e *HTTP) postStateless(w http.ResponseWriter, r *http.Request, batch []*Message, scope string) {
	m := batch[0]
	switch {
	case len(batch) > 1 || m.Method == "":
		writeMessage(w, http.StatusBadRequest, unread(jsonrpc.CodeInvalidRequest, Stateless+" has neither batches nor responses of clients"))
		return
	case m.ID == nil: // no notification of a client means anything: a request is cancelled by the end of its connection
		w.WriteHeader(http.StatusAccepted)
		return
	}
	err := checkEnvelope(m)
	if claimed := r.Header.Get(headerRevision); claimed != "" && m.Meta()[mcp.MetaKeyProtocolVersion] != nil && claimed != m.Meta().Text(mcp.MetaKeyProtocolVersion) {
		err = mismatch(headerRevision + " is " + strconv.Quote(claimed) + ", but the body says " + strconv.Quote(m.Meta().Text(mcp.MetaKeyProtocolVersion)))
	}
	if err == nil {
		err = checkHeaders(m, r.Header)
	}
	if err != nil {
		writeMessage(w, http.StatusBadRequest, &Message{ID: m.ID, Error: rpcError(err)})
		return
	}
	principal := e.principalOf(r, scope)
	l, err := e.find("\x00"+principal, func(c *Client) { // no session has such an id: a header cannot have that character
		c.Principal, c.Scope, c.speaksAll = principal, scope, true
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer e.done(l)
	s, request := l.newStateless(m, r.Header, r.Context())
	l.c.receiveAs(request.Message, request)
	s.answer(w, r, l)
}

// principalOf identifies who sends a stateless request: whoever has the same token or certificate, asks for the same scope, and sends
// the same [HTTP.ClientHeader].
func (e *HTTP) principalOf(r *http.Request, scope string) string {
	said := []string{givenToken(r), scope, "", ""}
	if e.ClientHeader != "" {
		said[2] = r.Header.Get(e.ClientHeader)
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		said[3] = string(r.TLS.VerifiedChains[0][0].Raw)
	}
	data, _ := json.Marshal(said) // texts only
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:])
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
