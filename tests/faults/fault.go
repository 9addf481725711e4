package faults

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Fault handles a request. next is the server, which the fault may call. A fault may be
// called from several goroutines at once.
type Fault func(w http.ResponseWriter, r *Request, next http.Handler)

// around returns a handler that runs the fault.
func (f Fault) around(req *Request, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { f(w, req, next) })
}

// Refuse answers with a status and a body. The server does not get the request. A body
// that begins with a brace is JSON, in which "%s" stands for the id of the request.
func Refuse(status int, body string) Fault {
	return func(w http.ResponseWriter, r *Request, _ http.Handler) {
		if !strings.HasPrefix(body, "{") {
			http.Error(w, body, status)
			return
		}
		id := r.ID
		if id == nil {
			id = json.RawMessage("null")
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		w.Write([]byte(strings.ReplaceAll(body, "%s", string(id)))) //nolint:errcheck // its client is gone
	}
}

// RefuseFor is [Refuse] with a Retry-After header, in seconds.
func RefuseFor(seconds, status int, body string) Fault {
	refuse := Refuse(status, body)
	return func(w http.ResponseWriter, r *Request, next http.Handler) {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
		refuse(w, r, next)
	}
}

// Hang does not answer until the client gives up. The server does not get the request.
func Hang() Fault {
	return func(_ http.ResponseWriter, r *Request, _ http.Handler) { <-r.Context().Done() }
}

// Delay passes a request on after the given time.
func Delay(d time.Duration) Fault {
	return func(w http.ResponseWriter, r *Request, next http.Handler) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			next.ServeHTTP(w, r.Request)
		case <-r.Context().Done():
		}
	}
}

// Cut resets the connection. The server does not get the request, but the client cannot
// know that.
func Cut() Fault {
	return func(_ http.ResponseWriter, r *Request, _ http.Handler) {
		if tcp, ok := connOf(r).(*net.TCPConn); ok {
			tcp.SetLinger(0) //nolint:errcheck // otherwise the close sends no reset
		}
		hangUp(r)
		panic(http.ErrAbortHandler)
	}
}

// CutAnswer passes the request on, and closes the connection after n bytes of the body
// of the answer. A body of n bytes or fewer is passed on unchanged.
func CutAnswer(n int) Fault {
	return func(w http.ResponseWriter, r *Request, next http.Handler) {
		s := &short{ResponseWriter: w, r: r, left: n}
		next.ServeHTTP(s, r.Request)
		if s.cut {
			panic(http.ErrAbortHandler)
		}
	}
}

// Times runs a fault for the first n requests, and passes later requests on.
func Times(n int, f Fault) Fault {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *Request, next http.Handler) {
		mu.Lock()
		hit := n > 0
		n--
		mu.Unlock()
		if !hit {
			next.ServeHTTP(w, r.Request)
			return
		}
		f(w, r, next)
	}
}

// Sometimes runs one of the faults for the given share of the requests, and passes the
// others on. The seed decides, by the order in which requests come in, which request
// meets which fault.
func Sometimes(seed uint64, share float64, faults ...Fault) Fault {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 0))
	return func(w http.ResponseWriter, r *Request, next http.Handler) {
		mu.Lock()
		hit, which := random.Float64() < share, random.IntN(max(1, len(faults)))
		mu.Unlock()
		if !hit || len(faults) == 0 {
			next.ServeHTTP(w, r.Request)
			return
		}
		faults[which](w, r, next)
	}
}

// connOf returns the connection of a request, or nil.
func connOf(r *Request) net.Conn {
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	return conn
}

// hangUp closes the connection of a request, after everything that was written is sent.
func hangUp(r *Request) {
	if conn := connOf(r); conn != nil {
		conn.Close() //nolint:errcheck // that is the purpose
	}
}

// short passes on the beginning of an answer, and then closes the connection.
type short struct {
	http.ResponseWriter
	r    *Request
	left int
	cut  bool
}

func (s *short) Write(p []byte) (int, error) {
	switch {
	case s.cut:
		return 0, io.ErrClosedPipe
	case len(p) <= s.left:
		s.left -= len(p)
		return s.ResponseWriter.Write(p)
	}
	if s.left > 0 {
		s.ResponseWriter.Write(p[:s.left])                   //nolint:errcheck // the connection is cut either way
		http.NewResponseController(s.ResponseWriter).Flush() //nolint:errcheck // as above
	}
	s.cut = true
	hangUp(s.r)
	return 0, io.ErrClosedPipe
}

// Flush is for handlers that ask for an [http.Flusher].
func (s *short) Flush() {
	http.NewResponseController(s.ResponseWriter).Flush() //nolint:errcheck // http.Flusher reports no error
}

// Unwrap is for [http.ResponseController].
func (s *short) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Expiry is a form in which a server refuses a session that it does not know.
type Expiry struct {
	// Name names the server.
	Name string
	// Fault answers a request on such a session. It does not pass the request on.
	Fault Fault
}

// Expiries returns the forms in which servers in use refuse a session that they do not
// know. The first is that of the Go SDK.
func Expiries() []Expiry {
	return []Expiry{
		{"Go SDK", Refuse(404, "session not found")},
		{"TypeScript SDK", Refuse(404, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`)},
		{"Python SDK", Refuse(404, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`)},
		{"C# SDK", Refuse(404, `{"jsonrpc":"2.0","id":"","error":{"code":-32001,"message":"Session not found"}}`)},
		{"TypeScript example", Refuse(400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`)},
		{"TypeScript example, echoed", Refuse(400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":%s}`)},
		{"server-everything", Refuse(400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`)},
		{"TypeScript SDK, restarted", Refuse(400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}`)},
		{"older Python SDK", Refuse(400, "Bad Request: No valid session ID provided")},
		{"invalid or missing", Refuse(400, "Invalid or missing session ID")},
		{"proxy", Refuse(404, "<html><body>Not Found</body></html>")},
		{"gone", Refuse(410, "")},
		{"404 with the request's id", Refuse(404, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":%s}`)},
		{"401 that is about a session", Refuse(401, `{"error":"invalid_session","message":"Unknown session id"}`)},
	}
}
