// Package handles tests the handles that servers mint, see [mcpbridge.Handle], with real processes. The test has the build tag handles:
//
//	make handles AGENTS=64,256,512
//
// A server has 16 handles, over streamable HTTP without sessions. Agents of a platform, which is a program with a supervisor, each mint
// one, use it for some time, and end. Half of the agents release theirs before they end. Half of the others have lent it to another agent, which
// still uses it after they have ended. The server counts who holds which handle, and notes what is released twice, and what is released while
// another agent holds it.
//
// That is run without a declaration and with it, and then again while the platform or the server is killed, while answers are
// lost, and with handles that are the numbers 1, 2, 3. With -v the test prints a table.
//
// [mcpbridge.Handle]: https://pkg.go.dev/github.com/mcpactor/mcpactor/mcpbridge#Handle
package handles
