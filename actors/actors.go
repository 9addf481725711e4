package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/registry"
)

// Config is the configuration of a registry and its sessions. It has no defaults: package
// supervisor sets every field.
type Config = contract.Config

// Start spawns a registry, and returns the PID that takes all commands. The PID stays valid:
// after the registry has stopped, for whatever reason, commands are answered with
// [messages.CodeClosed], until another actor takes the name. free is false if the name is taken
// in the system, and then nothing is spawned.
func Start(system *actor.ActorSystem, cfg Config) (pid *actor.PID, free bool) {
	return registry.Start(system, cfg)
}

// What user code implements, and what it gets. Both actors use it, so it is declared below them.
type (
	// Runner runs an operation and returns its result, or an error. The error of the Runner
	// that an [Interceptor] gets is of type [*messages.Failure]:
	//
	//	func(ctx context.Context, op messages.Operation) (messages.Result, error)
	Runner = contract.Runner

	// Interceptor wraps a [Runner], as middleware wraps an http.Handler. It can read or replace
	// an operation, read or replace its result, measure its time, or refuse it by returning an
	// error without calling next. A replay happens within next, so that each operation is
	// intercepted once:
	//
	//	func(next Runner) Runner
	//
	// The outer function is called once, when the supervisor starts. The inner function runs in
	// a goroutine of its own for each operation. It must pass its ctx, or a context that is
	// derived from it, to next. The ctx ends at the operation's deadline and when the operation
	// is cancelled; the caller then gets its reply even if the interceptor does not return. An
	// error that is not a [*messages.Failure] reaches the caller as [messages.CodeRefused].
	// Operations and results are read-only: change a copy, see [messages.With].
	//
	// The ctx has the attributes and the trace of the operation, see [messages.AttributesOf]. If
	// a client has sent the operation, ctx also has the values of the client's context, until
	// the client has the reply. What is added to the ctx that is passed to next reaches the
	// credentials of the requests.
	Interceptor = contract.Interceptor

	// Fault is why an incarnation of a session has ended: its Key, the Class of the error,
	// whether it was Dialing, the Generation of its MCP session, how long the connection Lived,
	// and the Cause. It is the reason in Proto.Actor's supervision events. Its text contains no
	// secrets. It unwraps to the cause.
	Fault = contract.Fault

	// Strategy decides about sessions that have failed for a reason of their own: they expired,
	// their connection broke, or the dial was refused by a server that is up. It does not decide
	// about a server that is down. Its method Decider(messages.Key) Decider returns the decider
	// of a session. Implement it to replace the default of package supervisor.
	Strategy = contract.Strategy

	// Decider decides about the faults of one session, by its method
	// Decide(*Fault, time.Time) Decision. It must not block.
	Decider = contract.Decider

	// Decision is what a [Decider] has decided about a fault: whether to GiveUp, the Delay until
	// the next dial, and which Attempt this is.
	Decision = contract.Decision
)
