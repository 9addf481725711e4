package mcpbridge

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/mcpactor/mcpactor/internal/visible"
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

// CheckHeader returns an error if a header cannot be in [Server.Headers] or [Credentials]:
// the connection sets it by itself, or HTTP cannot carry it. The error does not contain the
// value.
func CheckHeader(name, value string) error {
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

// checkHeaders reports the first of a configuration's headers that is wrong.
func checkHeaders(headers map[string]string) error {
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		err := CheckHeader(name, headers[name])
		if canonical := http.CanonicalHeaderKey(name); err == nil && seen[canonical] {
			err = errors.New("is there twice: upper and lower case are the same")
		} else {
			seen[canonical] = true
		}
		if err != nil {
			return fmt.Errorf("headers.%s: %w", visible.Detail(name), err)
		}
	}
	return nil
}
