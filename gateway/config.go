package gateway

import (
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

const (
	// patience bounds the wait of a call for a server that is down.
	patience = 20 * time.Second
	// startPatience bounds the wait of a call for a server that is starting. Most SDKs give a call 60 s.
	startPatience = 55 * time.Second
	// startTimeout bounds the time that a process takes to answer initialize. Its program may have to be downloaded.
	startTimeout = 5 * time.Minute
	// closePatience bounds the end of a session. Many clients kill their servers after 2 s.
	closePatience = 1500 * time.Millisecond
)

// Backend runs the calls of clients: a *[supervisor.Supervisor], or a Member of package cluster.
type Backend interface {
	toolset.Backend
	// Server returns the configuration of a server, or nil. It is read-only.
	Server(name string) *mcpbridge.Server
}

var _ Backend = (*supervisor.Supervisor)(nil)

// Config is the configuration of a gateway. The zero value is for clients in this process. It is read-only once given to [New].
type Config struct {
	// Servers are what clients of other programs get: the names of servers, with filters for their tools. If an entry has a scope,
	// all clients share the session of that scope.
	Servers []toolset.Filter
	// Prefixed is true if the names of tools and prompts get the name of their server. It must be true for several servers.
	Prefixed bool
	// LeftOut has a line for each server that is left out, with the reason. Clients of other programs get them as log messages.
	LeftOut []string
	// Quiet is the [messages.Header.Quiet] of requests of clients. Defaults to that of the supervisor.
	Quiet time.Duration
	// Wait bounds the wait of initialize for servers that have not answered yet. Defaults to 25 s in front of several servers,
	// and to no bound in front of one.
	Wait time.Duration
	// Lingers is true if the start of a server continues after its client has left, so that the next client finds its lists.
	Lingers bool
	// Lists remembers between runs which servers were silent. Defaults to nowhere.
	Lists mcpbridge.Store
	// Clients keeps clients of other programs between runs: they can return, and their sessions stay open on their servers if
	// the supervisor has LeaveOpen and the store Sessions. Defaults to none: clients do not return.
	Clients *ClientStore
	// Sessions is where the supervisor keeps the sessions of Clients. Sessions of other scopes there are closed.
	Sessions mcpbridge.Store
	// Logger logs what concerns clients. Defaults to no log.
	Logger zerolog.Logger
}

// errGone is the error for a request whose client has left.
var errGone = errors.New("the client has left")

// errClosed is the error for a client that comes after [Gateway.Close].
var errClosed = errors.New("the gateway is closed")
