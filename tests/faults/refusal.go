package faults

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// Verdict is what a [Refusal] says of the session that it is given to.
type Verdict string

// The verdicts on a session.
const (
	// Certain: the server does not know the session, and says so in the form that
	// the specification has for it.
	Certain Verdict = "certain"
	// Expired: the server does not know the session, and says so in a form that a
	// session that lives may get as well.
	Expired Verdict = "expired"
	// Alive: the server knows the session. The refusal is about something else.
	Alive Verdict = "alive"
)

// Answer is an HTTP response. In its body, "{id}" is the id of the request, or null,
// and "{session}" is the id of its session.
type Answer struct {
	Status int               `json:"status"`
	Header map[string]string `json:"header"`
	Body   string            `json:"body"`
}

// Refusal is what a server in use has answered in place of what it was asked for.
type Refusal struct {
	Name string `json:"name"`
	// Source is the framework that was run to get the answer, with its version, or
	// where the answer is reported.
	Source string `json:"source"`
	// Invented is set for an answer that no server in use is known to give.
	Invented bool `json:"invented"`
	// Transport is what the server spoke: "http", "sse" for HTTP+SSE, or "stdio",
	// where the answer has no status.
	Transport string  `json:"transport"`
	Verdict   Verdict `json:"verdict"`
	// Ran is set when the tool had run before the refusal.
	Ran bool `json:"ran"`
	// Answer is given to each request on the session if the verdict is Certain or
	// Expired, and to a call of a tool if it is Alive.
	Answer
	// Ping and List are given to a ping, and to the lists of tools, resources and
	// prompts, if they are not nil.
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

// Form is how a server answers requests on a session that it does not know: an
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
		w.WriteHeader(http.StatusMethodNotAllowed) // a stream is no place for an answer
		return
	}
	w.Header()["Content-Type"] = nil // the server is not to guess
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

// Instead answers in a form, and the server gets nothing.
func Instead(form Form) Fault {
	return func(w http.ResponseWriter, r *Request, _ http.Handler) { form.answer(w, r) }
}

// Afterwards lets the server handle the request, drops its answer, and answers in a
// form.
func Afterwards(form Form) Fault {
	return func(w http.ResponseWriter, r *Request, next http.Handler) {
		next.ServeHTTP(&dropped{header: http.Header{}}, r.Request)
		form.answer(w, r)
	}
}

// On runs a fault for the requests of some kinds, see [Request.Kind], and passes the
// others on.
func On(f Fault, kinds ...string) Fault {
	return func(w http.ResponseWriter, r *Request, next http.Handler) {
		if slices.Contains(kinds, r.Kind) {
			f(w, r, next)
			return
		}
		next.ServeHTTP(w, r.Request)
	}
}

// dropped is an answer that nobody gets.
type dropped struct{ header http.Header }

func (d *dropped) Header() http.Header         { return d.header }
func (d *dropped) Write(p []byte) (int, error) { return len(p), nil }
func (d *dropped) WriteHeader(int)             {}
func (d *dropped) Flush()                      {}
