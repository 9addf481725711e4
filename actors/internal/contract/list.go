package contract

import "github.com/mcpactor/mcpactor/messages"

// AsksCatalogue reports whether an operation takes a list of the catalogue, and whether that must be fresh.
func AsksCatalogue(op messages.Operation) (asks, fresh bool) {
	switch op := op.(type) {
	case *messages.ListTools:
		return op.Shared, op.Shared && op.Fresh
	case *messages.ListResources:
		return op.Shared, op.Shared && op.Fresh
	case *messages.ListResourceTemplates:
		return op.Shared, op.Shared && op.Fresh
	case *messages.ListPrompts:
		return op.Shared, op.Shared && op.Fresh
	}
	return false, false
}

// Watches reports whether a call waits as long as its server is down, also with FailFast.
func (k *Call) Watches() bool {
	_, fresh := AsksCatalogue(k.Op)
	return fresh
}

// ListingOf returns the field for the origin of a list in the result of an operation that lists.
func ListingOf(result messages.Result) **messages.Listing {
	switch r := result.(type) {
	case *messages.ToolList:
		return &r.Listing
	case *messages.PromptList:
		return &r.Listing
	case *messages.ResourceList:
		return &r.Listing
	case *messages.ResourceTemplateList:
		return &r.Listing
	}
	return new(*messages.Listing)
}
