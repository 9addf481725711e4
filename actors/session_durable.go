package actors

import (
	"context"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// durable is what outlives a restart of a session: the calls it owes a reply, its
// generation, its connections, and why it failed last.
type durable struct {
	cfg          *Config
	key          messages.Key
	server       *mcpbridge.Server // read-only
	registry     *actor.PID
	registration *registration // the registry's

	generation  uint64
	settings    settings        // what the next session is told again
	wasOpen     bool            // there has been a connection
	stateless   bool            // the last one kept nothing on the server
	parked      queue           // accepted and not running
	running     queue           // on conn or on old
	subscribing map[string]bool // URIs whose subscription is being changed by a call that is running
	listings    int             // tools/list requests of our own that are running

	// conn is the connection calls run on. nil while there is none.
	conn mcpbridge.Conn
	// oldConn was conn before a fault. It is let go before there is another.
	oldConn mcpbridge.Conn
	// resumable was old. The server may know its session still: it is what the
	// next dial resumes, and what has to be closed if there is none.
	resumable mcpbridge.Conn

	// abortDial ends the dial that is running; its end comes as dialed. nil when
	// there is none.
	abortDial context.CancelFunc

	openedAt     time.Time // when there was a connection first, of the last session
	openedUnused bool      // that was for nobody, and nobody has called since

	refused      *mcpbridge.Error // why the credentials were refused, or nil
	refusedUntil time.Time        // until then they have to be others

	cause    *Fault    // of the last restart, nil if there was none
	failedAt time.Time // when that was
	lostAt   time.Time // when there was a connection last

	wakeTimer *time.Timer // sends woke; nil when none is on its way
	wakeAt    time.Time   // when timer fires

	noResume bool     // what is remembered of a session is not to be resumed: it is being ended, or was left
	cleanup  *cleanup // what it was spawned to end, or nil

	drainOrder  *drain       // the last one, nil before
	callReplied *callReplied // one message for all calls: it is immutable
	mailbox     unreadMailbox
}

// store returns what is remembered of the session elsewhere.
func (d *durable) store() keyStore { return keyStore{d.cfg, d.key} }

// addRunning notes that a call is running.
func (d *durable) addRunning(k *call) {
	d.running.push(k)
	if uri, is := k.subscription(); is {
		if d.subscribing == nil {
			d.subscribing = map[string]bool{}
		}
		d.subscribing[uri] = true
	}
}

// removeRunning drops a call that does not run any more.
func (d *durable) removeRunning(k *call) {
	if k.in != &d.running {
		return
	}
	d.running.remove(k)
	if uri, is := k.subscription(); is {
		delete(d.subscribing, uri)
	}
}

// owed returns the calls whose callers wait for a reply.
func (d *durable) owed() []*call {
	owed := slices.Collect(d.parked.all())
	for k := range d.running.all() {
		if !k.replied {
			owed = append(owed, k)
		}
	}
	return owed
}
