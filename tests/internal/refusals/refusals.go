// Package refusals has answers with which servers in use have refused requests, each with
// its source: answers to a session that they do not know, and answers about something else
// in the same words.
package refusals

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/mcpactor/mcpactor/tests/faults"
)

// Verdict is what a [Refusal] means for the session of the request.
type Verdict string

// The verdicts about a session.
const (
	// Certain: the server does not know the session, and answers in the form of the
	// specification.
	Certain Verdict = "certain"
	// Expired: the server does not know the session, and answers in a form that a
	// session that it knows may get as well.
	Expired Verdict = "expired"
	// Alive: the server knows the session. The refusal is about something else.
	Alive Verdict = "alive"
)

// Refusal is an answer with which a server in use has refused a request.
type Refusal struct {
	Name string `json:"name"`
	// Source is the framework that gave the answer, with its version, or the URL of a
	// report.
	Source string `json:"source"`
	// Invented is set for an answer that no server in use is known to give.
	Invented bool `json:"invented"`
	// Transport is the transport of the server: "http", "sse" for HTTP+SSE, or "stdio",
	// where the answer has no status.
	Transport string  `json:"transport"`
	Verdict   Verdict `json:"verdict"`
	// Ran is true if the tool had run before the refusal.
	Ran bool `json:"ran"`
	// Answer is the answer to each request on the session if the verdict is Certain or
	// Expired, and to a call of a tool if it is Alive.
	Answer
	// Ping and List are the answers to a ping and to the lists of tools, resources and
	// prompts, unless they are nil.
	Ping *Answer `json:"ping"`
	List *Answer `json:"list"`
}

//go:embed testdata/refusals.json
var file []byte

// All returns refusals of servers in use, and a few that are invented.
func All() (all []Refusal) {
	if err := json.Unmarshal(file, &all); err != nil {
		panic(err) // the file is part of this package
	}
	return all
}

// Respond is a [faults.Fault].
func (r Refusal) Respond(w http.ResponseWriter, req *faults.Request, next http.Handler) {
	switch {
	case r.Ping != nil && req.Kind == "ping":
		r.Ping.Respond(w, req, next)
	case r.List != nil && strings.HasSuffix(req.Kind, "/list"):
		r.List.Respond(w, req, next)
	default:
		r.Answer.Respond(w, req, next)
	}
}

// Expiry returns the refusal as a form in which a server refuses a session.
func (r Refusal) Expiry() faults.Expiry { return faults.Expiry{Name: r.Name, Fault: r.Respond} }

// Answer is an HTTP response. In its body "{id}" stands for the id of the request, or
// null, and "{session}" for the id of its session.
type Answer struct {
	Status int               `json:"status"`
	Header map[string]string `json:"header"`
	Body   string            `json:"body"`
}

// Respond is a [faults.Fault].
func (a Answer) Respond(w http.ResponseWriter, req *faults.Request, _ http.Handler) {
	if req.Method == http.MethodGet && a.Status < 300 {
		w.WriteHeader(http.StatusMethodNotAllowed) // an answer does not fit in a stream
		return
	}
	w.Header()["Content-Type"] = nil // net/http must not add one
	for name, value := range a.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(a.Status)
	id := "null"
	if req.ID != nil {
		id = string(req.ID)
	}
	w.Write([]byte(strings.NewReplacer("{id}", id, "{session}", req.Session).Replace(a.Body))) //nolint:errcheck // its client is gone
}
