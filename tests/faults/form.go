package faults

import (
	"net/http"
	"slices"
	"strings"
)

// Form is an answer to requests on a session that the server does not know, such as an
// [Expiry] or an [Answer].
type Form interface {
	// Respond answers a request.
	Respond(w http.ResponseWriter, r *Request)
}

// Answer is an HTTP response. In its body "{id}" stands for the id of the request, or
// null, and "{session}" for the id of its session.
type Answer struct {
	Status int               `json:"status"`
	Header map[string]string `json:"header"`
	Body   string            `json:"body"`
}

// Respond implements [Form].
func (a Answer) Respond(w http.ResponseWriter, req *Request) {
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
	return func(w http.ResponseWriter, r *Request, _ http.Handler) { form.Respond(w, r) }
}

// Afterwards passes the request on, drops the answer of the server, and answers in the
// given form.
func Afterwards(form Form) Fault {
	return func(w http.ResponseWriter, r *Request, next http.Handler) {
		next.ServeHTTP(&dropped{header: http.Header{}}, r.Request)
		form.Respond(w, r)
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
