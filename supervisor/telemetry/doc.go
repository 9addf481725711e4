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
// Many calls may wait for one dial. Its span is a child of the first of them, and the others
// have a link to it.
//
// # Metrics
//
// Attributes of metrics have few values, such as the name of a configured server, a method or
// a code. Names of tools are added only with [Config.ToolNames]. Scopes, ids of sessions and
// arguments are in no metric and in no span. docs/operating.md lists all metrics.
//
// # Cost
//
// If no provider is set when the supervisor starts, or only providers that do nothing, Start
// does the same as supervisor.Start, Instrument changes nothing, and calls cost nothing more.
package telemetry
