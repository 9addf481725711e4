package messages

import "encoding/json"

// PassOn is the part of a [Header] for gateways: programs that pass on the requests of another client.
type PassOn struct {
	// Extra are further fields of the parameters, which their type does not have. Those that the parameters have as well
	// are ignored, and with protocol 2026-07-28 all are. Read-only once sent.
	Extra map[string]json.RawMessage
	// Verbatim asks for the result as the server has sent it, see [AsSent].
	Verbatim bool
}

// AsSent is the part of a message for gateways: what the other side has sent, before it was decoded.
//
//   - In a [Receipt], it is the result, if [PassOn] asked for it and the method has a result. The pages of a list are one
//     object. A list from the catalogue may have none.
//   - In a [Listing], an [Elicit], a [Sample] and an event, it is what the server says about itself, or the parameters, if
//     Verbatim of the server's configuration is set.
//   - In an [Elicited] or a [Sampled], it is the result that the server gets in place of Result, and without a check. Only a
//     question that has it may be answered with it.
type AsSent struct {
	// Verbatim is a JSON object, which must not be trusted, or nil. Read-only.
	Verbatim json.RawMessage `json:"verbatim,omitempty"`
}
