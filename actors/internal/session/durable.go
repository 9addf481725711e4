package session

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/connections"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/actors/internal/owed"
	"github.com/mcpactor/mcpactor/actors/internal/questions"
	"github.com/mcpactor/mcpactor/actors/internal/subscribers"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// durable is the state of a session that outlives a restart.
type durable struct {
	cfg    *contract.Config
	store  contract.KeyStore // read-only
	key    messages.Key
	server *mcpbridge.Server // read-only
	limits *mcpbridge.Limits // read-only; replaced by LimitsChanged
	out    outbox
	system *actor.ActorSystem // set when the actor has started

	incarnation int // counts them
	last        lastSession
	subscribers subscribers.Subscribers
	calls       owed.Calls
	requests    requests
	repetition  repetition

	conns       connections.Connections
	history     history
	credentials credentials

	dials dials

	cause    *actors.Fault // of the last restart, or nil
	failedAt time.Time     // when that fault happened

	timer alarm.Timer // sends timerFired

	bind      *messages.Bind // of the scope; not nil, read-only
	questions questions.Questions

	drainOrder  *contract.Drain        // the last drain message, or nil
	left        bool                   // the MCP session that the store has was left open, for another process
	lastMessage contract.SessionClosed // is sent when the session is closed
	mailbox     mailbox.Mailbox
}
