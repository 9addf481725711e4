package messages

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/mcpactor/mcpactor/internal/caller"
)

// Trace links an operation to the trace of its caller, as W3C Trace Context defines it.
// Interceptors and credentials can read it, see [TraceOf]. The requests of the operation carry
// it to the server: in _meta as traceparent and tracestate, as SEP-414 of MCP says, and over
// HTTP in the headers Traceparent and Tracestate as well. It replaces neither a traceparent
// that the caller has put into _meta, nor a header of the configuration or of credentials.
type Trace struct {
	// Parent is a traceparent, such as
	// "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01". Empty means no trace.
	Parent string `json:"parent,omitempty"`
	// State is a tracestate, such as "vendor=value", or empty.
	State string `json:"state,omitempty"`
}

const (
	// maxTraceParent bounds a traceparent. That of version 00 has 55 bytes, and those of
	// later versions may have more.
	maxTraceParent = 128
	// maxTraceMembers bounds the members of a tracestate.
	maxTraceMembers = 32
)

var (
	// traceParent is what a traceparent of any version begins with.
	traceParent = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-[!-~]*)?$`)
	// traceMember is one member of a tracestate.
	traceMember = regexp.MustCompile(`^[a-z0-9][a-z0-9_\-*/@]{0,255}=[ -+\--<>-~]{0,255}[!-+\--<>-~]$`)
)

// Validate returns an error if a field does not have the form that W3C Trace Context
// defines. The error names the field.
func (t Trace) Validate() error {
	if t == (Trace{}) {
		return nil
	}
	if t.Parent == "" {
		return errors.New("trace.state: there is no trace.parent")
	}
	m := traceParent.FindStringSubmatch(t.Parent)
	switch {
	case m == nil || len(t.Parent) > maxTraceParent || m[1] == "00" && m[4] != "":
		return errors.New("trace.parent: is not of the form version-traceid-parentid-flags, in lower-case hex")
	case m[1] == "ff":
		return errors.New("trace.parent: the version ff is not valid")
	case strings.Trim(m[2], "0") == "" || strings.Trim(m[3], "0") == "":
		return errors.New("trace.parent: an id has only zeros")
	}
	members := 0
	for member := range strings.SplitSeq(t.State, ",") {
		if member = strings.Trim(member, " \t"); member == "" {
			continue
		}
		if members++; members > maxTraceMembers {
			return fmt.Errorf("trace.state: has more than %d members", maxTraceMembers)
		}
		if !traceMember.MatchString(member) {
			return fmt.Errorf("trace.state: member %d is not of the form key=value", members)
		}
	}
	return nil
}

// WithTrace returns a context for operations of a client: they have this trace, unless
// their headers have one.
func WithTrace(ctx context.Context, t Trace) context.Context {
	return context.WithValue(ctx, caller.TraceKey{}, &t)
}

// TraceOf returns the trace of the operation that a context belongs to, as [AttributesOf]
// does for the attributes.
func TraceOf(ctx context.Context) Trace {
	if t, ok := ctx.Value(caller.TraceKey{}).(*Trace); ok {
		return *t
	}
	return Trace{}
}
