package messages

import "encoding/json"

// PassOn is the part of a [Header] for gateways: programs that pass on the requests of another client.
type PassOn struct {
	// Extra are further fields of the parameters, which their type does not have, such as inputResponses and requestState. They are
	// sent as they are. Those that the parameters have as well are ignored; so is _meta for a server of protocol 2026-07-28, where
	// the parameters of each request have their own. Read-only once sent.
	//
	// The _meta of the parameters may say what such a request says of its client: the keys io.modelcontextprotocol/clientInfo,
	// clientCapabilities and logLevel reach a server of protocol 2026-07-28 as they are. Its protocolVersion is that of the session.
	// Servers of older protocols are sent none of these.
	Extra map[string]json.RawMessage
	// AsIs is true if the caller itself follows what a server of protocol 2026-07-28 answers: the result may ask for input
	// (SEP-2322) or be a task (SEP-2663), which Verbatim of its [Receipt] then has. Each further round is an operation of its own,
	// with inputResponses and requestState as Extra. Servers of older protocols have neither. It needs Verbatim, and
	// Result of the reply is empty then. A durable call cannot have it. Defaults to false: the module follows both.
	AsIs bool
	// Verbatim asks for the result as the server has sent it, see [AsSent].
	Verbatim bool
}

// AsSent is the part of a message for gateways: what the other side has sent, before it was decoded.
//
//   - In a [Receipt], it is the result, if [PassOn] asked for it and the method has a result. The pages of a list are one
//     object. A list from the catalogue may have none.
//   - In a [Listing], an [Elicit], a [Sample] and an event, it is what the server says about itself, or the parameters, if
//     Verbatim of the server's configuration is set. What a server says about itself is the result of server/discover, which has
//     supportedVersions, or that of initialize, which has protocolVersion.
//   - In an [Elicited] or a [Sampled], it is the result that the server gets in place of Result, and without a check. Only a
//     question that has it may be answered with it.
type AsSent struct {
	// Verbatim is a JSON object, which must not be trusted, or nil. Read-only.
	Verbatim json.RawMessage `json:"verbatim,omitempty"`
}
