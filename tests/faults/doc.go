// Package faults makes MCP servers misbehave, so that agents can be tested against faults
// of real servers: sessions that expire in any of the forms known from servers in use,
// connections that break at any point, servers that hang, restart or send invalid messages.
//
//   - [Script] is a server whose tools return what a test says. It needs no network. Start
//     here to test an agent.
//   - [Named] are the most frequent faults, by their names. [Script.FailsAtRandom] chooses
//     among them by a seed.
//   - [Server] is an HTTP server for MCP on a loopback socket. It is in front of a handler
//     or, as a [Proxy], in front of another server.
//   - [Fault] is what the server does to a request.
//   - [Local] is a server without a socket, for tests inside a bubble of testing/synctest.
//   - [Tools] is an MCP server whose tools count, wait, and record every execution.
//   - [Hooks] run before and after each dial, call and close of a supervisor.
//
// Faults are repeatable, schedules are not: a seed chooses the same faults for the same calls,
// and the Go runtime chooses the order of goroutines. Every server listens on loopback only.
// The package is for tests, in this module and in others. Do not use it in production.
package faults
