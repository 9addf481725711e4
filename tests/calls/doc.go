// Package calls is a module of its own for a test of durable and of answered calls: its dependencies are none of the library's.
//
//	make calls CALLS=100000
//
// TestCallsRunOnce starts programs with a supervisor, and an MCP server whose tool writes an entry into a ledger before it answers.
// Each call has an id. Half of them are durable, and half are proposed, and approved later. All programs are killed again and
// again, at any moment: the server also between the entry and the answer. Whoever has no outcome asks again, with the same id, in
// the next program. There are two set-ups:
//
//   - one program, with its records in a file
//   - two programs, with their records in a server of Redis that is cut off again and again; some calls are asked for in both at once
//
// At the end the ledger says what has run: no call twice, all that have a result, none of which it was said that it did not run.
// Of some calls it may be said at the end that nobody knows: of one in a hundred of those that were in flight at a kill, at most.
//
// The same load is put on a client as many write it: sessions and results in maps behind a mutex, and one retry. With -v the test prints
// a table with both.
package calls
