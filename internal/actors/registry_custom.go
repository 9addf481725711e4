package actors

import (
	"fmt"
	"slices"

	"github.com/mcpactor/mcpactor/messages"
)

// unknownMethod returns the rejection of a call of a custom method that its server is not
// configured with, or nil.
func (r *registry) unknownMethod(k *call) *messages.Failure {
	op, custom := k.op.(*messages.Custom)
	if srv := r.servers[k.key.Server]; !custom || srv == nil || slices.Contains(srv.CustomMethods, op.Name) {
		return nil
	}
	return k.failure(messages.CodeInvalid, fmt.Sprintf("name: %q is not one of the customMethods of the server", truncated(op.Name)))
}
