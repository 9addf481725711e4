package table

import "github.com/mcpactor/mcpactor/actors/internal/contract"

// CallName is how a [messages.Cancel] names a call.
type CallName struct {
	Session *Registration
	ID      string
}

// Calls finds the calls that sessions have by their ids. Calls of one name are linked. Adding and
// removing one takes constant time.
type Calls map[CallName]*contract.Call

// Add adds a call that a session is about to get.
func (names Calls) Add(k *contract.Call, to *Registration) {
	k.Ticket.At = to
	if k.Op.RequestID() == "" {
		return // it cannot be cancelled by name
	}
	name := CallName{to, k.Op.RequestID()}
	if k.Ticket.Older = names[name]; k.Ticket.Older != nil {
		k.Ticket.Older.Ticket.Newer = k
	}
	names[name] = k
}

// Remove removes a call that its session no longer has.
func (names Calls) Remove(k *contract.Call) {
	name := CallName{Of(k.Ticket.At), k.Op.RequestID()}
	older, newer := k.Ticket.Older, k.Ticket.Newer
	if older != nil {
		older.Ticket.Newer = newer
	}
	switch {
	case newer != nil:
		newer.Ticket.Older = older
	case older != nil:
		names[name] = older
	default:
		delete(names, name)
	}
	k.Ticket.At, k.Ticket.Older, k.Ticket.Newer = nil, nil, nil
}

// Named returns the newest call of a session with an id, or nil. The others follow it.
func (names Calls) Named(session *Registration, id string) *contract.Call {
	return names[CallName{session, id}]
}
