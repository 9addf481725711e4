// Package faults makes MCP servers misbehave, so that agents can be tested
// against what happens in the field: sessions that expire in any of the forms
// that servers in use have for it, connections that are cut at any point,
// servers that hang, restart, or speak nonsense, processes that do not end.
//
//   - [Server] is an HTTP server for MCP on a loopback socket: in front of a
//     handler, or, as a [Proxy], of a server somewhere else.
//   - [Fault] is what it does to a request.
//   - [Local] is the same without a socket, for tests in a bubble of testing/synctest.
//   - [Refusals] are what servers in use answer to a session that they do not know,
//     and what they say in the same words of other things, each with its source.
//   - [Tools] is an MCP server whose tools count, wait, and record every
//     execution.
//   - [Process] is a stdio server that misbehaves on command.
//   - [Hooks] wrap the dialer of a supervisor: before and after each dial, call
//     and close.
//
// Nothing here depends on the time or on chance, but for the port of a server and
// [Sometimes], which is seeded. Everything listens on loopback only. It is made for tests, by its own
// and by those of other modules; nothing of it belongs into production.
package faults
