// Package clusterapi is all that the module cluster uses of this module's internal packages, but for package schedule in
// tests. Nobody else imports it.
//
// The module cluster is released with this one, and works with the same version of it only. Who
// upgrades one of them alone learns that from the compiler: cluster refers to [Revision1]. When
// a name, a type or a meaning here changes, rename that constant, and the reference to it in
// cluster/member.go.
package clusterapi

import (
	"iter"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/internal/callbook"
	"github.com/mcpactor/mcpactor/internal/caller"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/dispatch"
	"github.com/mcpactor/mcpactor/internal/door"
	"github.com/mcpactor/mcpactor/internal/entry"
	"github.com/mcpactor/mcpactor/internal/freeport"
	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/internal/mismatch"
	"github.com/mcpactor/mcpactor/internal/operations"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/internal/results"
	"github.com/mcpactor/mcpactor/internal/storelimit"
	"github.com/mcpactor/mcpactor/internal/tracecontext"
	"github.com/mcpactor/mcpactor/messages"
)

// Revision1 is the revision of what this package has.
const Revision1 = 1

// What a member and a registry send to each other.
type (
	// ClientCall is [protocol.ClientCall].
	ClientCall = protocol.ClientCall
	// Cluster is [protocol.Cluster].
	Cluster = protocol.Cluster
	// HandedBack is [protocol.HandedBack].
	HandedBack = protocol.HandedBack
	// Release is [protocol.Release].
	Release = protocol.Release
	// ResentCall is [protocol.ResentCall].
	ResentCall = protocol.ResentCall
	// Timeouts is [protocol.Timeouts].
	Timeouts = protocol.Timeouts
	// Withdrawn is [protocol.Withdrawn].
	Withdrawn = protocol.Withdrawn
)

// NoHandler is why a question is refused that no handler can answer.
const NoHandler = protocol.NoHandler

// States returns the states of a session in the order in which a snapshot lists them.
func States() []messages.State { return protocol.States[:] }

// Operations is [operations.All].
func Operations() iter.Seq2[messages.Operation, messages.Result] { return operations.All() }

// Future is [protocol.Future].
type Future = protocol.Future

// NewFuture is [protocol.NewFuture].
func NewFuture(system *actor.ActorSystem, notes chan<- messages.Notification) *Future {
	return protocol.NewFuture(system, notes)
}

// CommandOf is [protocol.CommandOf].
func CommandOf(message any) (messages.Command, bool) { return protocol.CommandOf(message) }

// AnswerOf is [protocol.AnswerOf].
func AnswerOf(message any) messages.Answer { return protocol.AnswerOf(message) }

// Answer is [protocol.Answer].
func Answer(post *Post, supervisor string, message any, sender *actor.PID) {
	protocol.Answer(post, supervisor, message, sender)
}

// What leaves an actor.
type (
	// Dispatcher is [dispatch.Dispatcher].
	Dispatcher = dispatch.Dispatcher
	// Logger is [relay.Logger].
	Logger = relay.Logger
	// Post is [relay.Post].
	Post = relay.Post
	// Relay is [relay.Relay].
	Relay[T any] = relay.Relay[T]
)

// NewLogger is [relay.NewLogger].
func NewLogger(behind zerolog.Logger) *Logger { return relay.NewLogger(behind) }

// NewPost is [relay.NewPost].
func NewPost(system *actor.ActorSystem, events *Relay[any], bug func(message, reason any, stack []byte)) *Post {
	return relay.NewPost(system, events, bug)
}

// NewRelay is [relay.New].
func NewRelay[T any](limit int, take func(T), lost func(n uint64), bug func(v T, reason any, stack []byte)) *Relay[T] {
	return relay.New(limit, take, lost, bug)
}

// OpenDoor is [door.Open].
func OpenDoor(
	system *actor.ActorSystem, name string, late func(message any, sender *actor.PID), ended func(watcher, who *actor.PID),
	spawn func(stopped func()) *actor.PID,
) (pid *actor.PID, free bool) {
	return door.Open(system, name, late, ended, spawn)
}

// Values is [caller.Values].
type Values = caller.Values

// TraceOf is [tracecontext.Of].
var TraceOf = tracecontext.Of

// DecodeResult is [results.Decode], for a result that another member has decoded before.
func DecodeResult(method string, raw []byte) (mcp.Result, error) {
	result, _, err := results.Decode(method, raw)
	return result, err
}

// ParseJSON is [results.Parse].
var ParseJSON = results.Parse

// FindMismatch is [mismatch.Find].
var FindMismatch = mismatch.Find

// LimitStore is [storelimit.New].
var LimitStore = storelimit.New

// FreeAddr is [freeport.Addr].
var FreeAddr = freeport.Addr

// What a supervisor dials with.
type (
	// Conn is [dial.Conn].
	Conn = dial.Conn
	// ConnInfo is [dial.Info].
	ConnInfo = dial.Info
	// Dialer is [dial.Dialer].
	Dialer = dial.Dialer
	// DialRequest is [dial.Request].
	DialRequest = dial.Request
)

// ReplaceDialer is [dial.Replace].
func ReplaceDialer[Config any](cfg Config, d Dialer) Config { return dial.Replace(cfg, d) }

// WrapDialer is [dial.Wrap].
func WrapDialer[Config any](cfg Config, wrap func(Dialer) Dialer) Config { return dial.Wrap(cfg, wrap) }

// IsCallKey is [recordkey.IsCall].
var IsCallKey = recordkey.IsCall

// IsHandleKey is [recordkey.IsHandle].
var IsHandleKey = recordkey.IsHandle

// IsLoginKey is [recordkey.IsLogin].
var IsLoginKey = recordkey.IsLogin

// CallBook is [callbook.Book].
type CallBook = callbook.Book

// IsOutcome is [callbook.IsOutcome].
var IsOutcome = callbook.IsOutcome

// Panic is [guard.Panic].
type Panic = guard.Panic

// Guard is [guard.Call].
func Guard[T any](f func() (T, error)) (T, error) { return guard.Call(f) }

// The form in which all stores keep records: package entry explains it.
const (
	Forever       = entry.Forever
	DefaultMaxAge = entry.DefaultMaxAge
)

// ErrStoreClosed is [entry.ErrClosed].
var ErrStoreClosed = entry.ErrClosed

// The functions of package entry.
var (
	DecodeRecord   = entry.Decode
	EncodeRecord   = entry.Encode
	EncodeSwap     = entry.EncodeSwap
	HasVersion     = entry.HasVersion
	StoreFailed    = entry.Failed
	StoreFailedAll = entry.FailedAll
	KeyOfRecord    = entry.KeyOf
	NameOfRecord   = entry.Name
)
