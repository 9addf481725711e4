// Package telemetry sends traces and metrics of a supervisor to OpenTelemetry: a span for each
// call, with child spans for dials, set-up calls and replays, and metrics of calls, sessions and
// servers. It uses only the API of OpenTelemetry: the program chooses the SDK and the exporters.
//
// [Start] takes the place of supervisor.Start:
//
//	sup, stop, err := telemetry.Start(system, cfg, telemetry.Config{})
//
// [Instrument] is for the member of a cluster, which starts its supervisor itself:
//
//	cfg, observe, err := telemetry.Instrument(cfg, telemetry.Config{})
//	member, err := cluster.Start(ctx, system, cluster.Config{Supervisor: cfg})
//	stop, err := observe(member.Supervisor())
//
// # Spans
//
// The span of a call begins when the supervisor accepts the operation, and ends with the
// reply. Its name and its attributes are those of the semantic conventions for MCP. Its parent
// is the trace of the operation ([messages.Header]), or else the span in the context of the
// client. The requests of the call carry the span to the server.
//
//	tools/call search        the call, with the time that it has waited
//	├── dial                 an attempt to open the connection that the call waits for
//	├── setup                a request that prepares the session for the call
//	└── replay               a further run, on another connection
//
// The attribute mcpactor.queue.duration of a call is the time before its first run. error.type is
// the code of the failure, or tool_error; rpc.response.status_code has the code of a JSON-RPC error.
//
// Many calls may wait for one dial. Its span is a child of the first of them, and the others
// have a link to it.
//
// # Metrics
//
// Attributes of metrics have few values, such as the name of a configured server, a method or
// a code. Names of tools are added only with [Config.ToolNames]. Scopes, ids of sessions and
// arguments are in no metric and in no span. Each metric has a kind, a unit, and these
// attributes:
//
//	mcp.client.operation.duration, histogram, s: one request; names of tools and prompts only with ToolNames
//	    mcpactor.server, mcp.method.name, mcp.protocol.version, network.transport, error.type,
//	    gen_ai.operation.name, gen_ai.tool.name, gen_ai.prompt.name
//	mcp.client.session.duration, histogram, s: an MCP session that has ended; error.type is _OTHER if it was not closed
//	    mcpactor.server, error.type
//	mcpactor.call.duration, histogram, s: one call, from its acceptance to its reply
//	    mcpactor.server, mcp.method.name, mcpactor.code
//	mcpactor.call.queue.duration, histogram, s: the time before its first run
//	    mcpactor.server
//	mcpactor.call.replays, counter, {run}: further runs of calls
//	    mcpactor.server
//	mcpactor.call.in_flight, up-down counter, {call}: calls that run
//	    mcpactor.server
//	mcpactor.call.bounded, counter, {call}: calls that were not sent, because they were beyond the bounds of their server
//	    mcpactor.server
//	mcpactor.call.waiting, up-down counter, {call}: calls that wait
//	    mcpactor.server
//	mcpactor.dial.duration, histogram, s: one dial
//	    mcpactor.server, mcpactor.outcome, error.type
//	mcpactor.session.count, up-down counter, {session}: sessions by state
//	    mcpactor.server, mcpactor.state
//	mcpactor.session.faults, counter, {fault}: expired, lost and given up
//	    mcpactor.server, mcpactor.reason
//	mcpactor.session.rebuilds, counter, {session}: sessions with a connection again
//	    mcpactor.server, mcpactor.outcome
//	mcpactor.session.evictions, counter, {session}: sessions that were evicted
//	    mcpactor.server, mcpactor.reason
//	mcpactor.slot.used, up-down counter, {slot}: sessions that are open, dial or drain
//	mcpactor.slot.limit, up-down counter, {slot}: MaxSessions
//	mcpactor.handle.count, up-down counter, {handle}: handles by state, of servers that declare them
//	    mcpactor.server, mcpactor.state
//	mcpactor.handle.waiting, up-down counter, {call}: calls that wait for their turn to mint a handle
//	    mcpactor.server
//	mcpactor.handle.events, counter, {event}: handles that were minted, released, lost or left
//	    mcpactor.server, mcpactor.outcome
//	mcpactor.server.up, gauge: 1 if the server has answered, 0 if it is down
//	    mcpactor.server
//	mcpactor.list.scopes, up-down counter, {scope}: scopes that have asked for lists of the catalogue
//	    mcpactor.server, mcp.method.name
//	mcpactor.list.age, gauge, s: age of the oldest list of the catalogue
//	    mcpactor.server, mcp.method.name
//	mcpactor.event.dropped, counter, {event}: events dropped for slow handlers
//	mcpactor.answer.stray, counter, {answer}: answers of other connections
//	mcpactor.member.up, gauge: in a cluster: 1 if the member starts calls, 0 if it is fenced
//	mcpactor.member.refused, counter, {call}: calls that the member itself has failed, without a reply of a supervisor
//	mcpactor.member.view, gauge: the number of the view of the cluster that the member has
//	mcpactor.member.lease, gauge, s: the time for which it may act without an answer of the witness
//	mcpactor.member.hop, gauge, s: a heartbeat to the slowest other member and back
//
// The values of the attributes are:
//
//	mcpactor.server: the name of a configured server, or _OTHER
//	mcpactor.code: ok, tool_error, or the code of the failure
//	mcpactor.state: a state, such as ready; of a handle minting, held, releasing, left, or
//	    unanswered if the answer of its mint was lost
//	mcpactor.outcome: of a dial opened, resumed or failed; of a rebuild opened, which means
//	    that the state is lost, or resumed; of a handle minted, released, gone if the server did
//	    not know it any more, lost or left
//	mcpactor.reason: of a fault expired, lost or gave_up; of an eviction cap, server-cap,
//	    tenant-quota or idle
//	error.type: a code, tool_error, or absent after success
//
// # Cost
//
// If no provider is set when the supervisor starts, or only providers that do nothing, Start
// does the same as supervisor.Start, Instrument changes nothing, and calls cost nothing more.
package telemetry
