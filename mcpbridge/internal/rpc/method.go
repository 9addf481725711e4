package rpc

import "slices"

// The methods of MCP that the bridge looks for on the wire.
const (
	MethodInitialize  = "initialize"
	MethodInitialized = "notifications/initialized"
	// MethodDiscover is the first request to a server whose protocol is not known.
	MethodDiscover     = "server/discover"
	MethodListen       = "subscriptions/listen"
	MethodAcknowledged = "notifications/subscriptions/acknowledged"
	MethodCallTool     = "tools/call"
	MethodCancelled    = "notifications/cancelled"
	MethodToolsChanged = "notifications/tools/list_changed"
	MethodLog          = "notifications/message"
	MethodProgress     = "notifications/progress"
	MethodListRoots    = "roots/list"
	MethodRootsChanged = "notifications/roots/list_changed"
	MethodElicit       = "elicitation/create"
	MethodSample       = "sampling/createMessage"
	MethodUpdated      = "notifications/resources/updated"
	MethodCompleted    = "notifications/elicitation/complete"
)

// AnyNotification stands for all notifications beyond MCP in a configuration.
const AnyNotification = "*"

// notifications are the notifications of MCP that servers send.
var notifications = []string{
	MethodAcknowledged, MethodCancelled, MethodCompleted, MethodLog, MethodProgress, MethodToolsChanged, MethodUpdated,
	"notifications/prompts/list_changed", "notifications/resources/list_changed",
}

// IsNotificationOfMCP reports whether a method is a notification of MCP that servers send.
func IsNotificationOfMCP(method string) bool { return slices.Contains(notifications, method) }

// IsQuestion reports whether a method is that of a question, which the user, a model or the agent has to answer.
func IsQuestion(method string) bool {
	return method == MethodElicit || method == MethodSample || method == MethodListRoots
}

// IsForOthers reports whether the parameters of a request or notification of a server may be passed on to another client.
func IsForOthers(method string) bool {
	switch method {
	case MethodElicit, MethodSample, MethodLog, MethodUpdated, MethodCompleted:
		return true
	}
	return false
}
