// Package telemetry reports what a supervisor does to OpenTelemetry: a span for each call,
// with child spans for dials, set-up calls and replays, and metrics of calls, sessions and
// servers. It needs only the API of OpenTelemetry. The program chooses the SDK and the
// exporters.
//
// [Start] takes the place of supervisor.Start:
//
//	sup, stop, err := telemetry.Start(system, cfg, telemetry.Config{})
//
// # Spans
//
// The span of a call begins when the supervisor accepts the operation, and ends with the
// reply. Its name and its attributes are those of the semantic conventions for MCP. Its parent
// is the trace of the operation ([messages.Header]), or else the span in the context of the
// client. The requests of the call carry the span to the server.
//
//	tools/call search        the call, with the time that it has waited
//	├── dial                 the connection that this call has waited for
//	├── setup                a set-up call, or a setting that a new MCP session gets again
//	└── replay               a further run, on another connection
//
// Many calls may wait for one dial. The dial is a child of the first of them, and the others
// have a link to it.
//
// # Metrics
//
// Attributes of metrics have few values: the name of a configured server, a method, a state,
// a code, a reason. Names of tools are added only with [Config.ToolNames]. Scopes, ids of
// sessions and arguments are in no metric and in no span. Nothing is registered for a
// session. docs/telemetry.md lists all metrics.
//
// # Cost
//
// If neither a tracer nor a meter records anything when the supervisor starts, Start does what
// supervisor.Start does, and a call costs nothing more.
package telemetry
