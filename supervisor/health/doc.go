// Package health has HTTP handlers for the probes of an orchestrator such as Kubernetes.
//
// [Live] fails if the supervisor does not answer any more, so that only a restart of the
// process helps. MCP servers do not matter to it: a restart repairs no server, and closes the
// sessions with all others.
//
// [Ready] fails while the supervisor stops, and while a required server is down. An
// orchestrator then sends no new work to the process. Require a server
// only if the process is of no use without it: a server that is down is down for all
// processes, so that all become unready at once.
//
// Both answer with 200 or 503, and a body that lists the servers that are down, since when and
// why. It has no secrets, but it has names of servers and causes such as a refused connection:
// keep it from the public. The body is text, or JSON for a request that accepts
// application/json or has the query format=json:
//
//	{"ok":true,"down":[{"name":"search","since":"2026-07-28T12:00:00Z","cause":"unavailable: connection refused"}]}
//
// The handlers are cheap enough to be asked each second by many: at any time one question is
// under way to the supervisor, and all requests that come meanwhile get its answer. The time
// that it takes does not grow with the number of sessions.
package health
