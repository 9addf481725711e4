package handles

import "github.com/mcpactor/mcpactor/messages"

// Name names a handle: an ID is unique only among those of a server that the same tool has minted.
type Name struct{ Server, Mint, ID string }

// Holder is who holds a handle: a scope, or one of those that share it.
type Holder struct{ Scope, Name string }

// HolderOf returns who holds what an operation mints and uses.
func HolderOf(op messages.Operation) Holder {
	h := op.Head()
	name, _ := h.Attributes.Get(messages.HolderAttribute)
	return Holder{h.Key.Normal().Scope, name}
}

// Answer is what a server has answered to a call. To a mint, an answer without an ID may have minted something, unless None or Full is set.
type Answer struct {
	ID    string // that was minted
	None  bool   // certainly nothing was minted
	Full  bool   // there are too many
	Gone  bool   // there is no such handle
	IsErr bool   // the tool has returned an error
}
