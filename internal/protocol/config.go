package protocol

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/callbook"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// StartRegistry spawns a registry and returns the PID that takes all commands, [Reload], [Stop] and the
// messages of a [Cluster]. The PID stays valid: after the registry has stopped, for whatever
// reason, commands are answered with [messages.CodeClosed], until another actor takes the name. free
// is false if the name is taken in the system, and then nothing is spawned.
//
// Package actors/registry sets it, and exports nothing: no other module can start a registry.
var StartRegistry func(system *actor.ActorSystem, cfg Config) (pid *actor.PID, free bool)

// Config is the configuration of a registry and its sessions. It has no defaults: package
// supervisor sets every field.
type Config struct {
	Name     string             // the id of the PID; empty: it gets one
	Servers  []mcpbridge.Server // whose limits take the place of those below
	Dialer   dial.Dialer        // opens connections
	Strategy actors.Strategy    // decides about sessions that have failed
	Logger   *relay.Logger      // which never blocks
	Events   *relay.Relay[any]  // to the EventStream
	Post     *relay.Post        // to actors and processes of others

	MaxSessions     int // open sessions, including those that drain
	Bounds          []mcpbridge.Bound
	MaxRepeats      int // 0 is no limit
	MaxInFlight     int // running calls of one session
	MaxWaiting      int // waiting calls of one session
	MaxWaitingTotal int // waiting calls of all sessions
	MaxDials        int // concurrent dials to one server
	MaxStarts       int // processes that start, of all servers, until they answer

	Tenant               func(messages.Key) string // which must not block, or nil
	MaxSessionsPerTenant int                       // open sessions of one tenant; 0 is no bound

	FailFast bool // calls fail while their server is down

	Random func() float64 // in [0, 1), for the spread of delays

	IdleTimeout    time.Duration // 0 means never
	ConnectTimeout time.Duration // of one dial
	CallTimeout    time.Duration // for operations without a deadline
	DrainTimeout   time.Duration // for the calls of a session that closes
	CloseTimeout   time.Duration // for the DELETE, or the end of a process

	Interceptors []actors.Interceptor // the first one is the outermost

	Capabilities   *mcp.ClientCapabilities // that are declared to servers, unless the scope declares others; or nil
	Handler        *actor.PID              // for requests of servers, or nil
	HandlerTimeout time.Duration           // for the answer of Handler
	HandleGrace    time.Duration           // for the scopes of an earlier process to come back
	Subscriber     *actor.PID              // for notifications of servers, or nil

	Store     mcpbridge.Store // keeps MCP sessions across restarts of the process, or nil
	LeaveOpen bool            // Stop does not close MCP sessions that can be resumed
	Book      *callbook.Book  // of durable calls

	// Strays returns how many responses of servers were dropped because they belong to
	// other connections. It must not block.
	Strays func() uint64
	// Skipped returns how many bytes of stdout were skipped. It must not block.
	Skipped func() uint64

	// Forget makes the dialer forget what it knows of a server. It must not block. It may be
	// nil.
	Forget func(server string)

	// Stopped is called once, when the registry has stopped, with the keys that could not
	// be closed.
	Stopped func([]messages.Left)

	// Probe is called before a session handles a message. Tests panic in it.
	Probe func(actor.Context)
}
