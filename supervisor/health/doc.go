// Package health has HTTP handlers for the probes of an orchestrator such as Kubernetes.
//
// [Live] fails if the supervisor does not answer any more: then only a restart of the process
// helps. It does not depend on the MCP servers, because a restart repairs no server, and closes
// the sessions with all others.
//
// [Ready] fails while the supervisor stops, while a required server is down, and while a member of a
// cluster is fenced: the orchestrator then sends no new work to the process. Require a server only if the process is
// of no use without it: a server that is down makes all processes unready at once.
//
// Both answer with 200 or 503. The body lists the servers that are down, since when and why. It
// has no secrets, but it names servers and the causes of their faults: keep it from the public.
// The body is text, or JSON for a request that accepts application/json or has the query
// format=json:
//
//	{"ok":true,"down":[{"name":"search","since":"2026-07-28T12:00:00Z","cause":"unavailable: connection refused"}]}
//
// The handlers are cheap enough for many clients that ask every second: requests that come at
// the same time share one answer of the supervisor, whose cost does not grow with the number of
// sessions.
package health
