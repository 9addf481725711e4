// Package toolset presents the tools of several MCP servers to a model, and converts
// their results for it.
//
// A [Toolset] serves one conversation, with servers of one supervisor, each in a scope of its own
// if that is wanted. A [Pool] has the toolsets of many. [Toolset.Tools] returns a [Set]: the tools
// that pass the filters, under names that the APIs of models accept. [Toolset.Select] does the same
// for catalogs that are too large for a model. The Set renders the definitions for these APIs. What a
// model was shown stays in front, for their caches: see [Stability].
//
// [Toolset.Call] calls a tool. For an actor, [Use] is one message for one use of a tool, and [Told] the
// one reply. A [Policy] decides which calls are sent; it may wait for a person, or leave a call [Pending].
// [Toolset.Outcome] converts a result or a failure into parts that a model can read, and bounds
// what it gets of a long one. A [DefinitionChanged] says that a server has changed a tool.
//
// The list of a server's tools is fetched on first use and kept. It is fetched again
// after the server has said that it changed, and after its session was restarted, closed
// or replaced. A server that is down does not affect the tools of the others.
//
// # Concurrency
//
// All functions and methods may be called from any goroutine. A [Set], its tools and an
// [Output] do not change after they are returned, and the caller must not change them.
// A Toolset has goroutines only while it fetches a list, asks about a call, runs a [Use], or
// publishes events.
package toolset
