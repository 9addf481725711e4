package session

import (
	"context"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// keepalive sends pings while a session is ready.
type keepalive struct {
	cfg   *contract.Config
	to    *mailbox.Mailbox // of the session
	timer *alarm.Timer
	every time.Duration // 0: never

	at      time.Time // when the next ping is due, or zero
	pinging bool      // a ping was sent, and has not returned
}

// schedule sets the time of the next ping.
func (k *keepalive) schedule() {
	if k.every > 0 {
		k.at = time.Now().Add(k.every)
		k.timer.By(k.at)
	}
}

// pingIfDue sends a ping if one is due. It returns an error if the previous one has not returned.
func (k *keepalive) pingIfDue(conn dial.Conn) *mcpbridge.Error {
	if !k.timer.IsDue(k.at) {
		return nil
	}
	if k.pinging {
		return &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Detail: "the server did not answer a ping"}
	}
	k.pinging = true
	timeout := k.every
	k.cfg.Async(k.to, func() any {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		ping := &contract.Call{Op: &messages.Ping{}}
		_, err := ping.Perform(ctx, 0, conn, ping.Op)
		return &pingReturned{conn, err}
	})
	k.schedule()
	return nil
}

// returned handles the outcome of a ping, and reports whether the connection has ended. An error of the server is an answer,
// too.
func (k *keepalive) returned(e *mcpbridge.Error) (hasEnded bool) {
	switch {
	case e == nil || !e.Session.HasEnded() && e.Class != mcpbridge.Deadline:
		k.pinging = false
	case e.Session.HasEnded():
		return true
	}
	return false
}
