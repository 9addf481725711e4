// Package toolset presents the tools of several MCP servers to a model, and converts
// their results for it.
//
// A [Toolset] serves one scope, with servers of one supervisor. [Toolset.Tools] returns
// a [Set]: the tools that pass the filters, under names that the APIs of models accept.
// The Set renders their definitions for these APIs, and makes the message that calls a
// tool. [Convert] converts a result into parts that a model can read.
//
// The list of a server's tools is fetched on first use and kept. It is fetched again
// after the server has said that it changed, and after its session was restarted, closed
// or replaced. A server that is down does not affect the tools of the others.
//
// # Concurrency
//
// All functions and methods may be called from any goroutine. A [Set], its tools and an
// [Output] do not change after they are returned, and the caller must not change them.
// A Toolset has a goroutine only while it fetches a list.
package toolset
