package contract

import (
	"context"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/rounds"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// A call whose server asks for input stays a call that runs. Its questions need no connection: they stay open when it ends. The next
// round is sent on the connection that is open when they are answered, or on the next one:
//
//	run ──request──▶ result
//	 ▲  └──▶ input_required ──▶ asked ──▶ parked ──┐
//	 └─────────────────────────────────────────────┘

// NextRun notes that the call is about to run, and returns what is sent. isNew is true if this is the first request of a later round:
// it replays nothing.
func (k *Call) NextRun() (op messages.Operation, isNew bool) {
	k.Run.Rounds, isNew = k.Run.Rounds.Send()
	k.Run.newRound = isNew
	return k.Run.Rounds.Request(k.Op), isNew
}

// Asks notes that the last run was answered with questions. From then on the call may have run. The error says that the server asks
// for too much.
func (k *Call) Asks(asked *rounds.Asked) (rounds.Step, *mcpbridge.Error) {
	if k.Run.Lost == nil {
		k.Run.Lost = &mcpbridge.Error{
			Class: mcpbridge.Lost, Session: mcpbridge.Broken, Sent: true, Detail: "its server has asked for input, and was not sent the next round",
		}
	}
	var step rounds.Step
	if k.Run.Rounds, step = k.Run.Rounds.After(asked); step == rounds.GiveUp {
		return step, rounds.ErrTooMany
	}
	return step, nil
}

// Ask asks the questions of a round, and returns the [rounds.Answers]. conn is the connection that has brought them, which may end
// meanwhile. It may block.
func (k *Call) Ask(ctx context.Context, conn dial.Conn, asked *rounds.Asked) (result messages.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = Panicked(r)
		}
	}()
	h := *k.Op.Head()
	h.Subscriber, h.Owner, h.Quiet, h.Extra = nil, nil, 0, nil
	return conn.Do(ctx, &rounds.Questions{Header: h, Call: k.Op, Asked: asked})
}
