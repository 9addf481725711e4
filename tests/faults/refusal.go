package faults

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
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

// Answer is an HTTP response. In its body "{id}" stands for the id of the request, or
// null, and "{session}" for the id of its session.
type Answer struct {
	Status int               `json:"status"`
	Header map[string]string `json:"header"`
	Body   string            `json:"body"`
}

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
var refusals []byte

// Refusals returns refusals of servers in use, and a few that are invented.
func Refusals() (all []Refusal) {
	if err := json.Unmarshal(refusals, &all); err != nil {
		panic(err) // the file is part of this package
	}
	return all
}

// Form is an answer to requests on a session that the server does not know: an
// [Expiry], an [Answer] or a [Refusal].
type Form interface {
	answer(w http.ResponseWriter, r *Request)
}

func (r Refusal) answer(w http.ResponseWriter, req *Request) {
	switch {
	case r.Ping != nil && req.Kind == "ping":
		r.Ping.answer(w, req)
	case r.List != nil && strings.HasSuffix(req.Kind, "/list"):
		r.List.answer(w, req)
	default:
		r.Answer.answer(w, req)
	}
}

func (a Answer) answer(w http.ResponseWriter, req *Request) {
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

// Instead answers in the given form. The server does not get the request.
func Instead(form Form) Fault {
	return func(w http.ResponseWriter, r *Request, _ http.Handler) { form.answer(w, r) }
}

// Afterwards passes the request on, drops the answer of the server, and answers in the
// given form.
func Afterwards(form Form) Fault {
	return func(w http.ResponseWriter, r *Request, next http.Handler) {
		next.ServeHTTP(&dropped{header: http.Header{}}, r.Request)
		form.answer(w, r)
	}
}

// On runs a fault for requests of the given kinds, and passes the others on. See
// [Request.Kind].
func On(f Fault, kinds ...string) Fault {
	return func(w http.ResponseWriter, r *Request, next http.Handler) {
		if slices.Contains(kinds, r.Kind) {
			f(w, r, next)
			return
		}
		next.ServeHTTP(w, r.Request)
	}
}

// dropped discards an answer.
type dropped struct{ header http.Header }

func (d *dropped) Header() http.Header         { return d.header }
func (d *dropped) Write(p []byte) (int, error) { return len(p), nil }
func (d *dropped) WriteHeader(int)             {}
func (d *dropped) Flush()                      {}
