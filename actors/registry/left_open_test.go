package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// resumable is a connection whose MCP session outlives it. Closing it may fail, and its calls may ignore that they
// are cancelled.
type resumable struct {
	endingConn
	id                   string
	isClosed, isDetached atomic.Bool
	isAttached           bool
	fails                error
	deaf                 time.Duration
}

func (c *resumable) Resume() *mcpbridge.Resume {
	return &mcpbridge.Resume{SessionID: cmp.Or(c.id, "id"), Server: &mcp.InitializeResult{ProtocolVersion: "2025-06-18"}}
}

func (c *resumable) Info() dial.Info { return dial.Info{Attached: c.isAttached} }

func (c *resumable) Do(ctx context.Context, op messages.Operation) (messages.Result, error) {
	time.Sleep(c.deaf)
	return c.endingConn.Do(ctx, op)
}

func (c *resumable) Detach(ctx context.Context) error {
	c.isDetached.Store(true)
	return c.endingConn.Detach(ctx)
}

func (c *resumable) Close(ctx context.Context) error {
	c.isClosed.Store(true)
	return errors.Join(c.endingConn.Detach(ctx), c.fails)
}

// opensResumable returns such a connection.
func (d *scripted) opensResumable() *resumable { return &resumable{endingConn: *d.opens(0)} }

// noSaving is a store that saves nothing.
type noSaving struct{ oneRecord }

func (*noSaving) Save(context.Context, messages.Key, *mcpbridge.Record) error {
	return errors.New("the disk is full")
}

// leavingOpen is a supervisor that leaves what its store has open.
func leavingOpen(d *scripted, store mcpbridge.Store) func(*protocol.Config) {
	return func(cfg *protocol.Config) {
		cfg.Dialer, cfg.Store, cfg.LeaveOpen = d, store, true
		cfg.Servers = append(cfg.Servers, mcpbridge.Server{Name: "scripted"})
	}
}

// LeaveOpen leaves what the store has. A session that could not be saved would be lost to everybody.
func TestASessionThatTheStoreDoesNotHaveIsNotLeftOpen(t *testing.T) {
	for name, store := range map[string]mcpbridge.Store{"saved": &oneRecord{}, "not saved": &noSaving{}} {
		t.Run(name, func(t *testing.T) {
			d := &scripted{}
			conn := d.opensResumable()
			d.dials = []func(context.Context) (dial.Conn, error){opened(conn)}
			inWatchedRegistry(t, func(w *watchedRegistry) { require.IsType(t, &messages.ToolResult{}, <-w.callScripted().Reply) }, leavingOpen(d, store))
			require.Equal(t, name == "saved", conn.isDetached.Load())
			require.Equal(t, name != "saved", conn.isClosed.Load())
		})
	}
}

// An expired session may have a second one beside it for the next dial. If none comes, closing the first ends both.
func TestASessionThatHasExpiredIsNotLeftOpen(t *testing.T) {
	d := &scripted{}
	conn := d.opensResumable()
	d.dials = []func(context.Context) (dial.Conn, error){
		func(context.Context) (dial.Conn, error) {
			conn.err = &mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone, Sent: true}
			return conn, nil
		},
		func(ctx context.Context) (dial.Conn, error) {
			<-ctx.Done()
			return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable}
		},
	}
	inWatchedRegistry(t, func(w *watchedRegistry) {
		w.callScripted()
		synctest.Wait()
		require.Len(t, d.asked, 2)
		require.True(t, conn.isDetached.Load())
	}, leavingOpen(d, &oneRecord{}))
	require.True(t, conn.isClosed.Load())
}

// G1: also a bug in a session that drains forgets nothing of what could not be closed.
func TestABugInASessionThatDrainsDoesNotForgetWhatCouldNotBeClosed(t *testing.T) {
	d := &scripted{}
	conn := d.opensResumable()
	conn.fails, conn.deaf = errors.New("502"), 2*time.Second
	d.dials = []func(context.Context) (dial.Conn, error){opened(conn)}
	var isPlanted atomic.Bool
	inWatchedRegistry(t, func(w *watchedRegistry) {
		w.callScripted()
		synctest.Wait()
		closed := w.send(&messages.CloseScope{Scope: "a", Now: true})
		require.Len(t, (<-closed.Reply).(*messages.Closed).Left, 1)
		require.True(t, isPlanted.Load())
	}, func(cfg *protocol.Config) {
		cfg.Dialer = d
		cfg.Servers = append(cfg.Servers, mcpbridge.Server{Name: "scripted"})
		cfg.Probe = func(c actor.Context) {
			if conn.isClosed.Load() && fmt.Sprintf("%T", c.Message()) == "*session.callReturned" && !isPlanted.Swap(true) {
				panic(planted)
			}
		}
	})
}

// Guarantee 5: the store has the generation that callers see, also if a bug came before anybody saw the session.
func TestTheStoreHasTheGenerationOfASessionThatHadABugAsItOpened(t *testing.T) {
	d, s := &scripted{}, &oneRecord{key: messages.Key{Server: "scripted", Scope: "a"}, record: &mcpbridge.Record{}}
	first, second := d.opensResumable(), d.opensResumable()
	second.isAttached = true
	d.dials = []func(context.Context) (dial.Conn, error){
		opened(first),
		opened(second),
	}
	inWatchedRegistry(t, func(w *watchedRegistry) {
		require.Equal(t, messages.CodeInternal, (<-w.callScripted().Reply).(*messages.Failure).Code)
		synctest.Wait()
		require.Equal(t, s.record.Generation, (<-w.callScripted().Reply).(*messages.ToolResult).Generation)
	}, leavingOpen(d, s), func(cfg *protocol.Config) { cfg.Probe = plant("*session.dialed", 1001) }) // the others have opened before
}

// Guarantee 5: after a bug that came before anybody saw a session, that is resumed, and not the one before it, which the store still has.
func TestASessionThatHadABugAsItOpenedIsResumedInPlaceOfTheRecord(t *testing.T) {
	older := &mcpbridge.Record{Resume: mcpbridge.Resume{SessionID: "older", Server: &mcp.InitializeResult{ProtocolVersion: "2025-06-18"}}, Generation: 1}
	d, s := &scripted{}, &noSaving{oneRecord{key: messages.Key{Server: "scripted", Scope: "a"}, record: older}}
	first, second := d.opensResumable(), d.opensResumable()
	first.id, second.isAttached = "first", true
	d.dials = []func(context.Context) (dial.Conn, error){
		opened(first),
		opened(second),
	}
	inWatchedRegistry(t, func(w *watchedRegistry) {
		require.Equal(t, messages.CodeInternal, (<-w.callScripted().Reply).(*messages.Failure).Code)
		synctest.Wait()
		require.IsType(t, &messages.ToolResult{}, <-w.callScripted().Reply)
		require.Len(t, d.asked, 2)
		require.Equal(t, "older", d.asked[0].Resume.SessionID)
		require.Equal(t, "first", d.asked[1].Resume.SessionID)
	}, leavingOpen(d, s), func(cfg *protocol.Config) { cfg.Probe = plant("*session.dialed", 1001) }) // the others have opened before
}

// slowList is a store that is slow to list its keys.
type slowList struct{ oneRecord }

func (s *slowList) Keys(ctx context.Context) ([]messages.Key, error) {
	time.Sleep(time.Second)
	return s.oneRecord.Keys(ctx)
}

// What the store has of a key may be in use, once another member has the key.
func TestASessionInTheStoreIsNotClosedOnceAnotherMemberHasItsKey(t *testing.T) {
	s := &slowList{oneRecord{key: messages.Key{Server: "s", Scope: "stored"}}}
	s.record = &mcpbridge.Record{Resume: *(&resumable{}).Resume(), Generation: 3}
	inWatchedRegistry(t, func(w *watchedRegistry) {
		var owns atomic.Bool
		owns.Store(true)
		w.system.Root.Send(w.pid, &protocol.Cluster{Owns: func(messages.Key) bool { return owns.Load() }, HandBack: protocol.NewFuture(w.system, nil).PID})
		closed := w.send(&messages.CloseScope{Scope: "stored"})
		synctest.Wait()
		owns.Store(false)
		require.Empty(t, (<-closed.Reply).(*messages.Closed).Left)
		require.True(t, s.record.Valid())
	}, func(cfg *protocol.Config) { cfg.Dialer, cfg.Store = s, s })
	require.True(t, s.record.Valid())
}

// replacing is a store that gets another session of the key, left open by another process, as the one that it has is closed.
type replacing struct {
	oneRecord
	closed *resumable
}

func (r *replacing) Dial(ctx context.Context, req dial.Request) (dial.Conn, error) {
	other := *req.Resume
	other.SessionID = "other"
	return r.closed, r.Save(ctx, r.key, &mcpbridge.Record{Resume: other, Generation: 2})
}

// What closes what the store has of a key forgets that session only.
func TestASessionThatTheStoreGetsWhileAnotherIsClosedIsNotForgotten(t *testing.T) {
	s := &replacing{oneRecord: oneRecord{key: messages.Key{Server: "s", Scope: "stored"}}}
	s.record = &mcpbridge.Record{Resume: *(&resumable{}).Resume(), Generation: 3}
	inWatchedRegistry(t, func(w *watchedRegistry) {
		s.closed = new(scripted).opensResumable()
		s.closed.isAttached = true
		require.Empty(t, (<-w.send(&messages.CloseScope{Scope: "stored"}).Reply).(*messages.Closed).Left)
		require.True(t, s.closed.isClosed.Load())
		require.Equal(t, "other", s.record.SessionID)
	}, func(cfg *protocol.Config) { cfg.Dialer, cfg.Store = s, s })
}

// outliving is a server whose sessions are all open, with a store that saves nothing.
type outliving struct {
	oneRecord
	dials []string // of the key in the store: the session that each closes, or ""
}

func (o *outliving) Dial(_ context.Context, req dial.Request) (dial.Conn, error) {
	c := new(scripted).opensResumable()
	c.isAttached = req.Only
	switch {
	case req.Key != o.key:
	case req.Only:
		o.dials = append(o.dials, req.Resume.SessionID)
	default:
		o.dials = append(o.dials, "")
	}
	return c, nil
}

func (*outliving) Save(context.Context, messages.Key, *mcpbridge.Record) error {
	return errors.New("the disk is full")
}

// While the store fails, two processes may give their sessions of a key the same generation.
func TestASessionInTheStoreOfAnEarlierGenerationIsClosed(t *testing.T) {
	s := &outliving{oneRecord: oneRecord{key: messages.Key{Server: "s", Scope: "stored"}}}
	s.record = &mcpbridge.Record{Resume: *(&resumable{}).Resume(), Generation: 3}
	inWatchedRegistry(t, func(w *watchedRegistry) {
		for _, scope := range []string{"stored", "other", "stored"} {
			require.IsType(t, &messages.ToolResult{}, <-w.call(scope, "fast").Reply)
		}
		require.Equal(t, []string{"", "id", ""}, s.dials)
	}, func(cfg *protocol.Config) { cfg.Dialer, cfg.Store, cfg.MaxSessions = s, s, 1 })
}

// reopening is a server with a session that cannot be closed, and the store with its record.
type reopening struct {
	oneRecord
	resumed []*mcpbridge.Resume // by each dial of the key
}

func (r *reopening) Dial(ctx context.Context, req dial.Request) (dial.Conn, error) {
	c := new(scripted).opensResumable()
	c.isAttached = req.Resume != nil
	if req.Key == r.key {
		c.fails = errors.New("502")
		if !req.Only {
			r.resumed = append(r.resumed, req.Resume)
		}
	}
	return c, nil
}

// Guarantee 5: a session that could not be closed is not resumed, but one that another process has opened since is.
func TestALeftoverDoesNotKeepAnotherSessionOfItsKeyFromBeingResumed(t *testing.T) {
	for name, other := range map[string]bool{"the record is that of the leftover": false, "the record is that of another session": true} {
		t.Run(name, func(t *testing.T) {
			s := &reopening{oneRecord: oneRecord{key: messages.Key{Server: "s", Scope: "stored"}, record: &mcpbridge.Record{}}}
			inWatchedRegistry(t, func(w *watchedRegistry) {
				require.IsType(t, &messages.ToolResult{}, <-w.call("stored", "fast").Reply)
				require.NotEmpty(t, (<-w.send(&messages.CloseScope{Scope: "stored"}).Reply).(*messages.Closed).Left)
				if other {
					record := *s.record
					record.SessionID, record.Generation = "other", 2
					s.record = &record
				}
				require.IsType(t, &messages.ToolResult{}, <-w.call("stored", "fast").Reply)
				require.Len(t, s.resumed, 2)
				if !other {
					require.Nil(t, s.resumed[1])
					return
				}
				require.NotNil(t, s.resumed[1])
				require.Equal(t, "other", s.resumed[1].SessionID)
			}, func(cfg *protocol.Config) { cfg.Dialer, cfg.Store = s, s })
		})
	}
}

// Guarantee 8: a bug in the actor that closes what the store has of a key does not forget that session, which can be closed
// again.
func TestABugAsTheRecordIsLoadedDoesNotForgetTheSessionInTheStore(t *testing.T) {
	s := &oneRecord{key: messages.Key{Server: "s", Scope: "stored"}}
	s.record = &mcpbridge.Record{Resume: *(&resumable{}).Resume(), Generation: 3}
	inWatchedRegistry(t, func(w *watchedRegistry) {
		require.Len(t, (<-w.send(&messages.CloseScope{Scope: "stored"}).Reply).(*messages.Closed).Left, 1)
		require.True(t, s.record.Valid())
		require.Empty(t, (<-w.send(&messages.CloseScope{Scope: "stored"}).Reply).(*messages.Closed).Left)
		require.False(t, s.record.Valid())
	}, func(cfg *protocol.Config) { cfg.Dialer, cfg.Store, cfg.Probe = s, s, plant("*cleanup.recordLoaded", 0) })
}

// What is to be closed is not left open because the supervisor stops meanwhile.
func TestASessionThatIsBeingClosedIsNotLeftOpenByStop(t *testing.T) {
	d := &scripted{}
	conn := d.opensResumable()
	conn.deaf = 2 * time.Second
	d.dials = []func(context.Context) (dial.Conn, error){opened(conn)}
	inWatchedRegistry(t, func(w *watchedRegistry) {
		w.callScripted()
		synctest.Wait()
		w.send(&messages.CloseScope{Scope: "a"})
		synctest.Wait()
	}, leavingOpen(d, &oneRecord{}))
	require.True(t, conn.isClosed.Load())
	require.False(t, conn.isDetached.Load())
}

// Guarantee 8: a drain may come while the connection of a session that was lost is being detached. Its MCP session is closed.
func TestASessionWhoseConnectionIsBeingDetachedIsClosed(t *testing.T) {
	d := &scripted{}
	conn := d.opensResumable()
	conn.ends, conn.err = time.Second, &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Sent: true}
	d.dials = []func(context.Context) (dial.Conn, error){opened(conn)}
	inScript(t, d, func(w *watchedRegistry) {
		require.Equal(t, messages.CodeLost, (<-w.callScripted().Reply).(*messages.Failure).Code)
		synctest.Wait()
		require.True(t, conn.isDetached.Load())
		require.Empty(t, (<-w.send(&messages.CloseScope{Scope: "a"}).Reply).(*messages.Closed).Left)
		require.True(t, conn.isClosed.Load())
	})
}

// What is left open for another member stays in the store, also if the supervisor then stops and closes what else there is of
// the key.
func TestASessionThatWasLeftOpenIsNotForgottenWithTheOneBeforeIt(t *testing.T) {
	d, s := &scripted{}, &oneRecord{key: messages.Key{Server: "scripted", Scope: "a"}, record: &mcpbridge.Record{}}
	expired, left := d.opensResumable(), d.opensResumable()
	expired.err = &mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone, Sent: true}
	left.id, left.ends = "left", time.Second
	d.dials = []func(context.Context) (dial.Conn, error){
		opened(expired),
		func(ctx context.Context) (dial.Conn, error) {
			<-ctx.Done()
			return left, nil
		},
	}
	inWatchedRegistry(t, func(w *watchedRegistry) {
		var released atomic.Bool
		owns := func(key messages.Key) bool { return key != s.key || !released.Load() }
		w.system.Root.Send(w.pid, &protocol.Cluster{Owns: owns, HandBack: protocol.NewFuture(w.system, nil).PID})
		w.callScripted()
		synctest.Wait()
		released.Store(true)
		w.system.Root.Send(w.pid, &protocol.Release{Match: func(key messages.Key) bool { return key == s.key }, Leave: true})
		synctest.Wait()
		require.True(t, left.isDetached.Load())
		require.False(t, expired.isClosed.Load())
	}, leavingOpen(d, s), func(cfg *protocol.Config) { cfg.LeaveOpen = false })
	require.True(t, expired.isClosed.Load())
	require.False(t, left.isClosed.Load())
	require.Equal(t, "left", s.record.SessionID)
}

// slowLoad is a store that is slow to load the first record, and a server that notes the dials that are cancelled before they
// begin.
type slowLoad struct {
	oneRecord
	loads, abandoned atomic.Int32
}

func (s *slowLoad) Load(ctx context.Context, key messages.Key) (*mcpbridge.Record, error) {
	if key.Scope == "slow" && s.loads.Add(1) == 1 {
		time.Sleep(time.Minute)
	}
	return s.oneRecord.Load(ctx, key)
}

func (s *slowLoad) Dial(ctx context.Context, req dial.Request) (dial.Conn, error) {
	if ctx.Err() != nil {
		s.abandoned.Add(1)
	}
	return s.stub.Dial(ctx, req)
}

// A bug gives back the permit of a dial. If that one was still loading the record, it does not dial any more.
func TestADialThatIsAbandonedAsItLoadsTheRecordDoesNotBegin(t *testing.T) {
	s := &slowLoad{oneRecord: oneRecord{key: messages.Key{Server: "s", Scope: "stored"}, record: &mcpbridge.Record{}}}
	inWatchedRegistry(t, func(w *watchedRegistry) {
		w.call("slow", "fast")
		synctest.Wait()
		w.call("slow", "fast")
		time.Sleep(2 * time.Minute)
		require.Positive(t, s.loads.Load())
		require.Zero(t, s.abandoned.Load())
	}, func(cfg *protocol.Config) {
		isFirst := false
		cfg.Dialer, cfg.Store = s, s
		cfg.Probe = func(c actor.Context) {
			if s.loads.Load() == 1 && fmt.Sprintf("%T", c.Message()) == "*contract.Call" && !isFirst {
				isFirst = true
				panic(planted)
			}
		}
	})
}
