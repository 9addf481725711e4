// Package header says which headers a user may set.
package header

import (
	"errors"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// reserved are the headers that users cannot set, by their canonical names: those of the
// protocol and of the connection, and those that make net/http send a request again by
// itself, so that a call could run twice.
var reserved = map[string]bool{
	"Mcp-Session-Id": true, "Mcp-Protocol-Version": true, "Last-Event-Id": true, "Mcp-Method": true, "Mcp-Name": true,
	"Accept": true, "Content-Type": true,
	"Connection": true, "Content-Length": true, "Host": true, "Trailer": true, "Transfer-Encoding": true,
	"Idempotency-Key": true, "X-Idempotency-Key": true,
}

// reservedPrefix begins the names of headers that repeat arguments of a call.
const reservedPrefix = "Mcp-Param-"

// Check returns an error if a header cannot be one of a configuration or of credentials: the
// connection sets it by itself, or HTTP cannot carry it. The error does not contain the value.
func Check(name, value string) error {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		return errors.New("is no name of a header")
	case reserved[canonical] || strings.HasPrefix(canonical, reservedPrefix):
		return errors.New("is set by the connection itself: leave it out")
	case !httpguts.ValidHeaderFieldValue(value):
		return errors.New("the value has a control character, such as the end of a line")
	}
	return nil
}
