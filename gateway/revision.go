package gateway

import (
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
)

// isStateless reports whether what a server says about itself shows that it speaks protocol 2026-07-28.
func isStateless(said mcpserver.Object) bool {
	return said["supportedVersions"] != nil || said.Text("protocolVersion") > mcpserver.Revisions[0]
}

// asInitialize returns what a server says about itself as a result of initialize, also if it is one of server/discover.
func asInitialize(said mcpserver.Object) mcpserver.Object {
	if said["supportedVersions"] == nil {
		return said
	}
	result := mcpserver.Object(said.Without("supportedVersions", "resultType", "ttlMs", "cacheScope", "_meta"))
	if info := mcpserver.ObjectOf(said["_meta"])[mcp.MetaKeyServerInfo]; info != nil {
		result["serverInfo"] = info
	}
	return result
}

// completed returns a result as an object with what each result of protocol 2026-07-28 has: that of an earlier one is complete.
func completed(result any) mcpserver.Object {
	raw, isRaw := result.(json.RawMessage)
	object, isObject := result.(mcpserver.Object)
	if !isRaw && !isObject {
		raw, _ = mcpserver.Encode(result) // it is a result
	}
	if !isObject {
		object = mcpserver.ObjectOf(raw)
	}
	if object.Text("resultType") == "" {
		object.With("resultType", "complete")
	}
	return object
}

func completedOr(result any, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return completed(result), nil
}

// cacheable adds how long a result is fresh. It is for this client only: what a server lists depends on the token and on filters.
func cacheable(result mcpserver.Object, fresh time.Duration) mcpserver.Object {
	return result.With("ttlMs", fresh.Milliseconds()).With("cacheScope", "private")
}
