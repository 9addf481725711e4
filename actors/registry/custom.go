package registry

import (
	"fmt"
	"slices"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// unknownMethod returns the rejection of a call of a custom method that its server is not
// configured with, or nil.
func (r *registry) unknownMethod(k *contract.Call) *messages.Failure {
	op, custom := k.Op.(*messages.Custom)
	if srv := r.servers[k.Key.Server]; !custom || srv == nil || slices.Contains(srv.CustomMethods, op.Name) {
		return nil
	}
	return k.Failure(messages.CodeInvalid, fmt.Sprintf("name: %q is not one of the customMethods of the server", truncated(op.Name)))
}
