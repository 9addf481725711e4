package bridge

const (
	headerSession  = "Mcp-Session-Id"
	headerProtocol = "Mcp-Protocol-Version"
	headerEvent    = "Last-Event-Id"

	typeJSON = "application/json"
	typeSSE  = "text/event-stream"

	// maxRefusal bounds how much of a refusal is read.
	maxRefusal = 64 << 10
)
