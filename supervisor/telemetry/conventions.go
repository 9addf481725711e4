package telemetry

// conventions is the schema of the semantic conventions that the names below are from: version
// 1.41.0, the last one that defines those for MCP. Since then they are in the repository
// open-telemetry/semantic-conventions-genai, with the same names. They are in development.
const conventions = "https://opentelemetry.io/schemas/1.41.0"

// The attributes and metrics of the semantic conventions.
const (
	attrMethod           = "mcp.method.name"
	attrProtocolVersion  = "mcp.protocol.version"
	attrResource         = "mcp.resource.uri"
	attrOperation        = "gen_ai.operation.name"
	attrTool             = "gen_ai.tool.name"
	attrPrompt           = "gen_ai.prompt.name"
	attrRequestID        = "jsonrpc.request.id"
	attrServerAddress    = "server.address"
	attrServerPort       = "server.port"
	attrErrorType        = "error.type"
	attrStatusCode       = "rpc.response.status_code"
	attrNetworkTransport = "network.transport"

	metricOperationDuration = "mcp.client.operation.duration"
	metricSessionDuration   = "mcp.client.session.duration"

	executeTool = "execute_tool" // attrOperation of a call of a tool
	toolError   = "tool_error"   // attrErrorType of a result with IsError
	other       = "_OTHER"       // a value that is none of the known ones
)

// The attributes and metrics of this package.
const (
	attrServer     = "mcpactor.server"
	attrCode       = "mcpactor.code"
	attrState      = "mcpactor.state"
	attrReason     = "mcpactor.reason"
	attrOutcome    = "mcpactor.outcome"
	attrQueue      = "mcpactor.queue.duration"
	attrAttempt    = "mcpactor.attempt"
	attrGeneration = "mcpactor.generation"
	attrReplayed   = "mcpactor.replayed"

	metricCallDuration  = "mcpactor.call.duration"
	metricQueueDuration = "mcpactor.call.queue.duration"
	metricReplays       = "mcpactor.call.replays"
	metricInFlight      = "mcpactor.call.in_flight"
	metricWaiting       = "mcpactor.call.waiting"
	metricBounded       = "mcpactor.call.bounded"
	metricDialDuration  = "mcpactor.dial.duration"
	metricSessions      = "mcpactor.session.count"
	metricFaults        = "mcpactor.session.faults"
	metricRebuilds      = "mcpactor.session.rebuilds"
	metricEvictions     = "mcpactor.session.evictions"
	metricSlotsUsed     = "mcpactor.slot.used"
	metricSlotsLimit    = "mcpactor.slot.limit"
	metricHandles       = "mcpactor.handle.count"
	metricHandleWaiting = "mcpactor.handle.waiting"
	metricHandleEvents  = "mcpactor.handle.events"
	metricServerUp      = "mcpactor.server.up"
	metricListScopes    = "mcpactor.list.scopes"
	metricListAge       = "mcpactor.list.age"
	metricEventsDropped = "mcpactor.event.dropped"
	metricStrays        = "mcpactor.answer.stray"
	metricMemberUp      = "mcpactor.member.up"
	metricMemberRefused = "mcpactor.member.refused"
	metricMemberView    = "mcpactor.member.view"
	metricMemberLease   = "mcpactor.member.lease"
	metricMemberHop     = "mcpactor.member.hop"

	codeOK = "ok" // attrCode of a call that has succeeded
)

var (
	// conventionBounds are the buckets that the conventions advise, in seconds.
	conventionBounds = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
	// bounds are those of the histograms of this package.
	bounds = append([]float64{0.001, 0.002, 0.005}, conventionBounds...)
)
