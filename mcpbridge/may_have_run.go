package mcpbridge

import (
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// MayHaveRun reports whether the call may have run, although it failed:
//
//	how its last request ended                                 class                   may it have run?
//	no connection; not written; HTTP/2 "not processed"         NotSent                 no
//	not readable by a process that ended                       NotSent                 no
//	refused by 404 or 410, without the id of the request,
//	    and not by a page in HTML                              Expired, Unavailable    no
//	refused by a session that is found to be dead: see the
//	    documentation of this package                          Expired, or Lost        no, or yes
//	refused by 4xx, without the id                             Invalid, Unauthorized,  yes, unless the status or the
//	                                                           RateLimited             code says no: see below
//	an error with the id, in a 2xx or a 4xx                    as above, ServerError   yes, unless the code says no
//	a 5xx, with or without the id                              ServerError             yes
//	a redirect that is not followed: 302 and 303, or another   Protocol                yes, or no
//	2xx, and no response that can be read                      Protocol                yes
//	202, and the response cannot come                          Protocol                yes
//	2xx, and the stream with the response ended                Lost                    yes
//	written or sent, and the connection ended                  Lost                    yes
//	a result of a type that is not known, or null              Protocol                yes
//	it asked for input that it did not get                     Refused                 no
//	the context ended                                          Deadline, Cancelled     if it was sent
//
// If the server has accepted an earlier request of the same call, the answer is yes in all rows. If the server
// answers, only its status or code can show that the call has not run:
//
//   - The statuses 401, 403, 405, 406, 407, 411, 413, 414, 415, 421, 426, 429 and 431 say that the
//     request was refused before it was carried out.
//   - The code -32601 says that there is no such method. In a 4xx, the codes -32600 and -32700 say
//     that the request is wrong.
//   - The code -32602 does not say so: the TypeScript SDK, up to 1.29, also answers it after a tool has
//     run, if the result does not match the output schema.
func (e *Error) MayHaveRun() bool {
	if e.Begun {
		return true
	}
	switch e.Class {
	case Expired, NotSent, Unavailable, Refused:
		return false
	case Lost:
		return true
	case Invalid, Unauthorized, RateLimited:
		return e.Sent && (e.Doubt || !e.saysNotRun())
	}
	return e.Sent
}

// saysNotRun reports whether the status or the code of a refusal means that the call was not carried out.
func (e *Error) saysNotRun() bool {
	if e.Own || e.Status < 400 {
		return refusesTheRequest(e.Code)
	}
	return notCarriedOut[e.Status] || refusesTheRequest(e.Code)
}

// refusesTheRequest reports whether a JSON-RPC error says that the request itself is wrong. In a 2xx only
// -32601 is [Invalid].
func refusesTheRequest(code int64) bool {
	return code == jsonrpc.CodeParseError || code == jsonrpc.CodeInvalidRequest || code == jsonrpc.CodeMethodNotFound
}

// notCarriedOut are the statuses with which a request is refused before it is carried out.
var notCarriedOut = map[int]bool{
	http.StatusUnauthorized: true, http.StatusForbidden: true, http.StatusProxyAuthRequired: true, http.StatusTooManyRequests: true,
	http.StatusMethodNotAllowed: true, http.StatusNotAcceptable: true, http.StatusLengthRequired: true,
	http.StatusRequestEntityTooLarge: true, http.StatusRequestURITooLong: true, http.StatusUnsupportedMediaType: true,
	http.StatusMisdirectedRequest: true, http.StatusUpgradeRequired: true, http.StatusRequestHeaderFieldsTooLarge: true,
}
