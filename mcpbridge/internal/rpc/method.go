package rpc

// The methods of MCP that the bridge looks for on the wire.
const (
	MethodInitialize  = "initialize"
	MethodInitialized = "notifications/initialized"
	// MethodDiscover is the first request to a server whose protocol is not known.
	MethodDiscover     = "server/discover"
	MethodListen       = "subscriptions/listen"
	methodCallTool     = "tools/call"
	MethodCancelled    = "notifications/cancelled"
	MethodToolsChanged = "notifications/tools/list_changed"
	MethodLog          = "notifications/message"
	MethodProgress     = "notifications/progress"
	MethodListRoots    = "roots/list"
	MethodRootsChanged = "notifications/roots/list_changed"
	MethodElicit       = "elicitation/create"
	MethodSample       = "sampling/createMessage"
)

// IsQuestion reports whether a method is that of a question, which the user, a model or the agent has to answer.
func IsQuestion(method string) bool {
	return method == MethodElicit || method == MethodSample || method == MethodListRoots
}
