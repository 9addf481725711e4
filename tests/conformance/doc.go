// Package conformance runs the official conformance suites for MCP clients against a
// small client that is built on this module, in the folder client: what an agent does
// by sending messages to a supervisor has to be on the wire as the protocol wants it.
//
// What the client has to pass is in expected.json, with what is left out, and why. A
// check that fails and is not in there fails the test, and so does one that is in
// there and passes.
//
// Programs that are authorized by themselves are so by package login, as in other programs. Where a person logs in for a token that is
// bound to a key (DPoP), the client runs mcpactor login and mcpactor call.
//
// The client of the SDK plays the scenarios that are not about authorization, too: over the transports of a gateway.
//
// It also runs the suites for servers on mcpactor serve, in front of the server of the SDK
// for Go that is made for them, and compares the outcome with that of this server itself.
//
// Since the suites have scenarios of tasks (SEP-2663) for servers only, they check the server that the tests of tasks run
// against, package taskserver.
//
// The script install gets the suites; the tests have the build tag conformance, and
// need Linux:
//
//	tests/conformance/install
//	go test -tags conformance ./tests/conformance
package conformance
