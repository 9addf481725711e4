package rpc

// The methods of MCP that are looked for on the wire.
const (
	MethodInitialize  = "initialize"
	MethodInitialized = "notifications/initialized"
	// methodDiscover is the first request to a server whose protocol is not known.
	MethodDiscover     = "server/discover"
	MethodListen       = "subscriptions/listen"
	MethodCancelled    = "notifications/cancelled"
	MethodProgress     = "notifications/progress"
	MethodListRoots    = "roots/list"
	MethodRootsChanged = "notifications/roots/list_changed"
)
