package bridge

import (
	"encoding/json"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// metaOfRequests are the keys of _meta with which each request of protocol 2026-07-28 says what initialize said before.
var metaOfRequests = []string{mcp.MetaKeyProtocolVersion, mcp.MetaKeyClientInfo, mcp.MetaKeyClientCapabilities, mcp.MetaKeyLogLevel}

// adaptMeta makes the _meta of a request that of the protocol of its session: the caller may have set it for another one. What the
// caller says of a client reaches a server of protocol 2026-07-28 as it is; an older server is told nothing of it.
func (p protocol) adaptMeta(params mcp.Params) {
	if params == nil || p.version == "" { // the SDK itself sends the requests of a handshake
		return
	}
	meta := params.GetMeta()
	if !p.isModern {
		for _, key := range metaOfRequests {
			delete(meta, key)
		}
		return
	}
	if given, ok := meta[mcp.MetaKeyProtocolVersion]; ok && given != p.version {
		meta[mcp.MetaKeyProtocolVersion] = p.version
	}
}

// adaptExtra returns further parameters whose _meta, which parameters without one get, has nothing that only requests of protocol
// 2026-07-28 have. In that protocol, each request has its own.
func (p protocol) adaptExtra(extra map[string]json.RawMessage) map[string]json.RawMessage {
	if len(extra["_meta"]) == 0 || p.isModern {
		return extra
	}
	var meta map[string]json.RawMessage // declared here, since it escapes
	if json.Unmarshal(extra["_meta"], &meta) != nil {
		return extra
	}
	had := len(meta)
	for _, key := range metaOfRequests {
		delete(meta, key)
	}
	if len(meta) == had {
		return extra
	}
	adapted := maps.Clone(extra)
	adapted["_meta"], _ = json.Marshal(meta) // it was JSON
	return adapted
}
