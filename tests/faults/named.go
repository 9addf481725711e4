package faults

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Name is the name of a fault that a call of a tool can meet. docs/testing.md lists what
// the caller gets for each.
type Name string

// The names of faults, for [Steps.Fails] and [Named].
const (
	// SessionExpired: the server does not know the session anymore, and refuses the call.
	// The tool does not run. The supervisor opens a new session, and sends the call again.
	SessionExpired Name = "session expired"
	// ConnectionRefused: the server cannot be reached for this request. The tool does not
	// run. The supervisor sends the call again. A server with a socket resets the
	// connection instead, because it has the request already.
	ConnectionRefused Name = "connection refused"
	// LostBeforeRun: the connection breaks, and the tool does not run. The caller cannot
	// know that.
	LostBeforeRun Name = "lost before run"
	// LostAfterRun: the tool runs, and the connection breaks before the answer.
	LostAfterRun Name = "lost after run"
	// ServerDied: the tool runs. Then the process of the server ends before the answer, and
	// a new one is there at once. It knows no session.
	ServerDied Name = "server died"
	// Outage: the server goes down before the tool runs, and cannot be reached for 5 s. Then
	// it is back, with its sessions.
	Outage Name = "outage"
	// ServerHangs: the server never answers the call. The tool does not run.
	ServerHangs Name = "server hangs"
	// Slow: the server takes 10 s longer than usual. Then the tool runs.
	Slow Name = "slow"
	// ToolError: the result says that the tool has failed. It does not run.
	ToolError Name = "tool error"
	// RateLimited: the server answers 429, and asks for a second without calls. Calls with the same credentials do not reach it
	// in that second.
	RateLimited Name = "rate limited"
	// Unauthorized: the server answers 401.
	Unauthorized Name = "unauthorized"
	// ServerError: the server answers 500.
	ServerError Name = "server error"
	// InvalidParams: the server answers with the JSON-RPC error for invalid parameters.
	InvalidParams Name = "invalid params"
	// NotMCP: the server answers with text that is not a message of MCP.
	NotMCP Name = "not MCP"
)

const (
	slowFor   = 10 * time.Second // how long the fault Slow delays a call
	outageFor = 5 * time.Second  // how long an Outage is
)

// named are the faults, by their names. Each call makes a new fault.
var named = []struct {
	name Name
	make func() Fault
}{
	{SessionExpired, func() Fault {
		return func(w http.ResponseWriter, r *Request, next http.Handler) { r.server.Forget(Expiries()[0])(w, r, next) }
	}},
	{ConnectionRefused, refuseConnection},
	{LostBeforeRun, Cut},
	{LostAfterRun, func() Fault { return CutAnswer(0) }},
	{ServerDied, die},
	{Outage, goDown},
	{ServerHangs, Hang},
	{Slow, func() Fault { return Delay(slowFor) }},
	{ToolError, func() Fault {
		return Refuse(http.StatusOK, `{"jsonrpc":"2.0","id":%s,"result":{"isError":true,"content":[{"type":"text","text":"the tool failed"}]}}`)
	}},
	{RateLimited, func() Fault { return RefuseFor(1, http.StatusTooManyRequests, "too many requests") }},
	{Unauthorized, func() Fault { return Refuse(http.StatusUnauthorized, "unauthorized") }},
	{ServerError, func() Fault { return Refuse(http.StatusInternalServerError, "internal server error") }},
	{InvalidParams, func() Fault {
		return Refuse(http.StatusOK, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"invalid params"}}`)
	}},
	{NotMCP, func() Fault { return Refuse(http.StatusOK, `{"hello":"world"}`) }},
}

// Names returns the names of all faults.
func Names() (names []Name) {
	for _, one := range named {
		names = append(names, one.name)
	}
	return names
}

// Named returns the fault of a name. The error lists all names.
func Named(name Name) (Fault, error) {
	var known []string
	for _, one := range named {
		if one.name == name {
			return one.make(), nil
		}
		known = append(known, fmt.Sprintf("%q", one.name))
	}
	return nil, fmt.Errorf("faults: no fault has the name %q: use one of %s", name, strings.Join(known, ", "))
}

// refuseConnection makes a request fail as if nothing listened.
func refuseConnection() Fault {
	return func(w http.ResponseWriter, r *Request, next http.Handler) {
		if r.server.local {
			panic(errConnectionRefused)
		}
		Cut()(w, r, next)
	}
}

// die passes a request on, drops the answer, and restarts the server.
func die() Fault {
	return func(_ http.ResponseWriter, r *Request, next http.Handler) {
		next.ServeHTTP(&dropped{header: http.Header{}}, r.Request)
		r.server.Restart() //nolint:errcheck // a server that was closed meanwhile does not come back
		hangUp(r)
		panic(http.ErrAbortHandler)
	}
}

// goDown stops the server for a while.
func goDown() Fault {
	return func(_ http.ResponseWriter, r *Request, _ http.Handler) {
		r.server.stopFor(outageFor)
		panic(http.ErrAbortHandler)
	}
}

// dropped discards an answer.
type dropped struct{ header http.Header }

func (d *dropped) Header() http.Header         { return d.header }
func (d *dropped) Write(p []byte) (int, error) { return len(p), nil }
func (d *dropped) WriteHeader(int)             {}
func (d *dropped) Flush()                      {}
