// Package toolset gives a model the tools of several MCP servers, and gives it back
// what they answer.
//
// A [Toolset] is for one scope over servers of one supervisor. [Toolset.Tools]
// returns a [Set]: tools under names that the APIs of models accept, with filters
// applied. The Set renders their definitions for these APIs, and makes the message
// that calls one. [Convert] makes of a result what a model can read.
//
// Lists of tools are fetched when they are first asked for, kept, and fetched again
// once the server has said that they changed, or its session was restarted, closed or
// replaced. A server that is down hides no tools of the others.
//
// # Concurrency
//
// All functions and methods may be called from any goroutine. A [Set], its tools and
// an [Output] are never changed once returned: they are read-only for the caller, too.
// A Toolset that nobody waits on has no goroutine, but for a fetch under way.
package toolset
