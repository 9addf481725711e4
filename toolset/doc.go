// Package toolset presents the tools of several MCP servers to a model, and converts
// their results for it.
//
// A [Toolset] serves one agent, with servers of one supervisor, each in a scope of its own
// if that is wanted. [Toolset.Tools] returns a [Set]: the tools that pass the filters, under
// names that the APIs of models accept. [Toolset.Select] does the same for catalogs that are
// too large for a model. The Set renders the definitions for these APIs, and makes the message
// that calls a tool. [Toolset.Outcome] converts a result or a failure into parts that a model
// can read. A [Policy] decides which calls are sent, and a [DefinitionChanged] says that a
// server has changed a tool.
//
// The list of a server's tools is fetched on first use and kept. It is fetched again
// after the server has said that it changed, and after its session was restarted, closed
// or replaced. A server that is down does not affect the tools of the others.
//
// # Concurrency
//
// All functions and methods may be called from any goroutine. A [Set], its tools and an
// [Output] do not change after they are returned, and the caller must not change them.
// A Toolset has goroutines only while it fetches a list, asks about a call, or publishes events.
package toolset
