package keeper

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/handles"
	"github.com/mcpactor/mcpactor/messages"
)

// Receive handles a message of the interceptor, or of a goroutine of the keeper. It reports whether it was one.
func (k *Keeper) Receive(msg any) bool {
	switch msg := msg.(type) {
	case *ownCall:
		k.Calls.Accept(msg.call)
	case *mintAsked, *mintAnswered, *mintFailed, *useBegun, *useEnded:
		k.afterReading(func() { k.receive(msg) })
	default:
		return false
	}
	return true
}

func (k *Keeper) receive(msg any) {
	now := time.Now()
	switch msg := msg.(type) {
	case *mintAsked:
		if k.Table.Stopping {
			msg.of.turn <- messages.CodeDraining
		} else if !k.book.Ask(msg.of.Mint, now) {
			msg.of.turn <- messages.CodeBusy
		}
	case *mintAnswered:
		k.book.Answered(msg.of.Mint, msg.answer, msg.generation, now)
	case *mintFailed:
		k.book.Failed(msg.of.Mint, msg.mayHaveMinted, now)
	case *useBegun:
		if k.Table.Stopping { // it is refused, and holds nothing
			msg.reply <- begun{}
			return
		}
		holder := handles.HolderOf(msg.call)
		k.book.Alive(holder)
		uses, stale := k.book.Begins(msg.call.Params.Name, msg.given, holder, now)
		msg.reply <- begun{uses, stale}
	case *useEnded:
		for n, u := range msg.of {
			k.book.Ends(u, msg.answers[n], msg.mayHaveRun, now)
		}
	}
}

// Unread answers a message that the registry had not read when it stopped. It reports whether it was one of these.
func (k *Keeper) Unread(msg any) bool {
	switch msg := msg.(type) {
	case *mintAsked:
		msg.of.turn <- messages.CodeClosed
	case *useBegun:
		msg.reply <- begun{}
	case *ownCall:
		k.Cfg.AnswerUnread(msg.call, nil)
	default:
		return false
	}
	return true
}

// Follow carries out what the book has decided.
func (k *Keeper) Follow() {
	for decided := k.book.Decided(); len(decided) > 0; decided = k.book.Decided() {
		for _, d := range decided {
			k.carryOut(d)
		}
	}
	k.Alarm.Set(&k.due, k.book.Next())
}

func (k *Keeper) carryOut(d handles.Decision) {
	switch {
	case d.Grant != nil:
		d.Grant.Ticket.(*minting).turn <- granted
	case d.Refuse != nil:
		code := messages.CodeClosed
		if k.Table.Stopping {
			code = messages.CodeDraining
		}
		d.Refuse.Ticket.(*minting).turn <- code
	case d.Release != nil:
		k.release(d.Release, d.Until)
	case d.List != nil:
		k.look(d.List, d.By)
	case d.Forget != messages.Key{}:
		k.forget(d.Forget)
	case d.Pin != messages.Key{}:
		if reg := k.Table.Current(d.Pin); reg != nil {
			k.Pin(reg, k.book.IsBound(d.Pin))
		}
	case d.Over != nil:
		then := k.ends[d.Over]
		delete(k.ends, d.Over)
		then(d.Over)
	case d.Said != nil:
		k.publish(d.Said)
	}
}
