package lease

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
)

// elapsed returns a clock that begins now.
func elapsed() func() time.Duration {
	began := time.Now().Add(-time.Minute)
	return func() time.Duration { return time.Since(began) }
}

func TestLeaseRunsOutByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(time.Second, elapsed())
		require.False(t, l.Held(), "before the first renewal")
		l.Renew(l.Now())
		time.Sleep(time.Second - time.Nanosecond)
		require.True(t, l.Held())
		time.Sleep(time.Nanosecond)
		require.False(t, l.Held())
		l.Renew(l.Now())
		require.True(t, l.Held())
		l.End()
		require.False(t, l.Held())
		l.Renew(l.Now())
		require.True(t, l.Held())
	})
}

func TestLeaseIsRenewedFromTheTimeOfTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(time.Second, elapsed())
		asked := l.Now()
		time.Sleep(600 * time.Millisecond)
		l.Renew(asked)
		require.True(t, l.Held())
		time.Sleep(400 * time.Millisecond)
		require.False(t, l.Held())

		l.Renew(l.Now())
		l.Renew(asked)
		require.True(t, l.Held(), "an old answer changes nothing")
		l.Renew(l.Now() - time.Hour)
		require.True(t, l.Held())

		l.End()
		l.Renew(asked)
		require.False(t, l.Held(), "it has run out already")
	})
}

// A step of the wall clock neither ends a lease nor renews it, because a lease is by another clock: one that has begun when the
// machine or the process was started, and not in 1970.
func TestClockIsNotTheWallClock(t *testing.T) {
	require.Positive(t, Clock())
	require.Less(t, Clock(), time.Duration(time.Now().UnixNano())/2)
	now := time.Duration(1)
	l := New(time.Second, func() time.Duration { return now })
	l.Renew(l.Now())
	require.True(t, l.Held())
	now += 2 * time.Second // which the test has not taken by any other clock
	require.False(t, l.Held())
}

func TestLeaseOfTheOnlyHostDoesNotRunOut(t *testing.T) {
	now := time.Duration(1)
	l := New(Forever, func() time.Duration { return now })
	require.False(t, l.Held())
	l.Renew(l.Now())
	now += 10_000 * time.Hour
	require.True(t, l.Held())
}

func TestLeaseIsSafeForGoroutines(t *testing.T) {
	l := New(time.Hour, elapsed())
	latest := l.Now() + 24*time.Hour
	done := make(chan bool)
	for i := range 8 {
		go func() {
			for j := range 1000 {
				l.Renew(latest - time.Duration(i*j)*time.Second)
				l.Held()
			}
			done <- true
		}()
	}
	for range 8 {
		<-done
	}
	require.Equal(t, int64(latest+time.Hour), l.until.Load())
}

// inner is a dialer that counts, and its connection.
type inner struct {
	clusterapi.Conn
	resume                         *mcpbridge.Resume
	dials, calls, closed, detached int
}

func (i *inner) Dial(context.Context, clusterapi.DialRequest) (clusterapi.Conn, error) {
	i.dials++
	return i, nil
}

func (i *inner) Do(context.Context, messages.Operation) (messages.Result, error) {
	i.calls++
	return &messages.Ack{}, nil
}

func (i *inner) Info() clusterapi.ConnInfo { return clusterapi.ConnInfo{Attached: true} }
func (i *inner) Resume() *mcpbridge.Resume { return i.resume }

func (i *inner) Close(context.Context) error {
	i.closed++
	return nil
}

func (i *inner) Detach(context.Context) error {
	i.detached++
	return nil
}

// An operation that waits for the lease is sent if it has time left when the lease is back. Otherwise it is given up before its
// deadline, at which its session would say that it may have run.
func TestOperationIsNotSentWithoutTimeLeft(t *testing.T) {
	for name, c := range map[string]struct {
		back  time.Duration
		calls int
	}{"in time": {900 * time.Millisecond, 1}, "late": {970 * time.Millisecond, 0}, "too late": {time.Hour, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, in := New(2*time.Second, elapsed()), &inner{}
				l.Renew(l.Now())
				conn, err := l.Dialer(in, nil).Dial(t.Context(), clusterapi.DialRequest{})
				require.NoError(t, err)
				time.Sleep(2 * time.Second) // synctest
				back := time.AfterFunc(c.back, func() { l.Renew(l.Now()) })
				defer back.Stop()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err = conn.Do(ctx, &messages.Ping{})
				require.Equal(t, c.calls, in.calls)
				if c.calls == 0 {
					require.NoError(t, ctx.Err(), "before the deadline")
					require.Equal(t, mcpbridge.Deadline, mcpbridge.AsError(err).Class)
					require.False(t, mcpbridge.AsError(err).MayHaveRun())
				}
			})
		})
	}
}

func TestFencedMemberClosesNoSessionThatAnotherOneMayHave(t *testing.T) {
	saved, unsaved, nothing := &mcpbridge.Resume{SessionID: "saved"}, &mcpbridge.Resume{SessionID: "unsaved"}, func(*Lease) {}
	renew := func(l *Lease) { l.Renew(l.Now()) }
	store := new(resume.Memory)
	require.NoError(t, store.Save(t.Context(), messages.Key{}, &mcpbridge.Record{Resume: *saved}))
	for name, c := range map[string]struct {
		shared    mcpbridge.Store
		resume    *mcpbridge.Resume
		meanwhile func(*Lease)
		stays     bool
		err       error
	}{
		"the lease does not come":      {store, saved, nothing, true, ErrFenced},
		"the lease comes":              {store, saved, renew, false, nil},
		"the member is removed":        {store, saved, (*Lease).End, true, nil},
		"it is removed and comes back": {store, saved, func(l *Lease) { l.End(); renew(l) }, true, nil},
		"the member leaves unheard":    {store, saved, (*Lease).Abandon, true, ErrFenced},
		"without a store":              {nil, saved, nothing, false, nil},
		"that nobody can resume":       {store, nil, nothing, false, nil},
		"that was not saved":           {store, unsaved, (*Lease).End, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, i := New(time.Second, elapsed()), &inner{resume: c.resume}
				renew(l)
				conn, err := l.Dialer(i, c.shared).Dial(t.Context(), clusterapi.DialRequest{})
				require.NoError(t, err)
				time.Sleep(time.Second) // the lease runs out
				time.AfterFunc(time.Second, func() { c.meanwhile(l) })
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				require.Equal(t, c.err, conn.Close(ctx))
				require.Equal(t, c.stays, i.detached == 1)
				require.Equal(t, c.stays, i.closed == 0)
			})
		})
	}
}

func TestFencedMemberStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, i := New(time.Second, elapsed()), &inner{}
		dialer := l.Dialer(i, new(resume.Memory))
		requireFenced := func(err error, class mcpbridge.Class, session mcpbridge.Fate) {
			t.Helper()
			var e *mcpbridge.Error
			require.ErrorAs(t, err, &e)
			require.ErrorIs(t, err, ErrFenced)
			require.Equal(t, class, e.Class)
			require.Equal(t, session, e.Session)
			require.False(t, e.Sent)
		}
		_, err := dialer.Dial(t.Context(), clusterapi.DialRequest{})
		requireFenced(err, mcpbridge.Unavailable, mcpbridge.Alive)
		toClose := clusterapi.DialRequest{Only: true}
		time.AfterFunc(time.Second, l.End)
		_, err = dialer.Dial(t.Context(), toClose)
		requireFenced(err, mcpbridge.Unavailable, mcpbridge.Alive)
		require.Zero(t, i.dials)

		time.AfterFunc(time.Second, func() { l.Renew(l.Now()) })
		conn, err := dialer.Dial(t.Context(), toClose)
		require.NoError(t, err, "it has waited for the lease")
		require.True(t, conn.Info().Attached, "the rest of the connection is as it was")
		_, err = conn.Do(t.Context(), &messages.Ping{})
		require.NoError(t, err)
		require.Equal(t, 1, i.calls)

		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = conn.Do(ctx, &messages.Ping{})
		requireFenced(err, mcpbridge.Deadline, mcpbridge.Alive)
		require.Equal(t, 1, i.calls)
		time.AfterFunc(time.Second, func() { l.Renew(l.Now()) })
		_, err = conn.Do(t.Context(), &messages.Ping{})
		require.NoError(t, err, "it has waited for the lease")
		require.Equal(t, 2, i.calls)

		time.Sleep(time.Second)
		time.AfterFunc(time.Second, l.End)
		_, err = conn.Do(t.Context(), &messages.Ping{})
		requireFenced(err, mcpbridge.NotSent, mcpbridge.Broken)
		l.Renew(l.Now())
		_, err = conn.Do(t.Context(), &messages.Ping{})
		requireFenced(err, mcpbridge.NotSent, mcpbridge.Broken)
		require.Equal(t, 2, i.calls, "its session may be another member's")
	})
}

func TestFencedMemberStoresNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, memory := New(time.Second, elapsed()), new(resume.Memory)
		mine, other := messages.Key{Server: "s", Scope: "mine"}, messages.Key{Server: "s", Scope: "other"}
		store := l.Store(memory, func(key messages.Key) bool { return key == mine }, nobody)
		record := &mcpbridge.Record{Resume: mcpbridge.Resume{SessionID: "id", Endpoint: "e", Server: &mcp.InitializeResult{ProtocolVersion: "2025-06-18"}}, Generation: 1}
		require.ErrorIs(t, store.Save(t.Context(), mine, record), ErrFenced)
		require.NoError(t, memory.Save(t.Context(), other, record))
		loaded, err := store.Load(t.Context(), mine)
		require.NoError(t, err)
		require.Nil(t, loaded)

		l.Renew(l.Now())
		require.NoError(t, store.Save(t.Context(), mine, record))
		keys, err := store.Keys(t.Context())
		require.NoError(t, err)
		require.Equal(t, []messages.Key{mine}, keys)

		time.Sleep(time.Second)
		time.AfterFunc(time.Second, func() { l.Renew(l.Now()) })
		keys, err = store.Keys(t.Context())
		require.NoError(t, err)
		require.Equal(t, []messages.Key{mine}, keys, "it has waited for the lease")
		time.Sleep(time.Second)
		time.AfterFunc(time.Second, l.End)
		_, err = store.Keys(t.Context())
		require.ErrorIs(t, err, ErrFenced)
		require.ErrorIs(t, store.Delete(t.Context(), mine), ErrFenced)
		loaded, err = store.Load(t.Context(), mine)
		require.NoError(t, err)
		require.Equal(t, uint64(1), loaded.Generation, "it may still read")
		l.Renew(l.Now())
		require.NoError(t, store.Delete(t.Context(), mine))
	})
}

// nobody holds of no record.
func nobody(*mcpbridge.Record) bool { return false }

func TestFencedMemberSwapsOnlyOutcomes(t *testing.T) {
	l, memory := New(time.Second, elapsed()), new(resume.Memory)
	key := messages.Key{Server: "s", Scope: "call"}
	isOutcome := func(record *mcpbridge.Record) bool { return record.Generation == 7 }
	store, ok := l.Store(memory, func(messages.Key) bool { return false }, isOutcome).(mcpbridge.Swapper)
	require.True(t, ok)
	swap := func(from, generation uint64) (bool, error) {
		return store.Swap(t.Context(), key, from, &mcpbridge.Record{Version: from + 1, Generation: generation})
	}
	_, err := swap(0, 1)
	require.ErrorIs(t, err, ErrFenced)
	l.Renew(l.Now())
	swapped, err := swap(0, 1)
	require.NoError(t, err)
	require.True(t, swapped)

	l.End()
	_, err = swap(1, 1)
	require.ErrorIs(t, err, ErrFenced)
	swapped, err = swap(0, 7)
	require.NoError(t, err)
	require.False(t, swapped, "it has another version")
	swapped, err = swap(1, 7)
	require.NoError(t, err)
	require.True(t, swapped)
	record, err := memory.Load(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, &mcpbridge.Record{Version: 2, Generation: 7}, record)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = store.Swap(over, key, 2, &mcpbridge.Record{Version: 3, Generation: 7})
	require.ErrorIs(t, err, context.Canceled)
}

// A store that swaps no records has no wrapper that does.
func TestWrapperSwapsOnlyWhatItsStoreSwaps(t *testing.T) {
	plain := struct{ mcpbridge.Store }{new(resume.Memory)}
	_, ok := New(time.Second, elapsed()).Store(plain, func(messages.Key) bool { return true }, nobody).(mcpbridge.Swapper)
	require.False(t, ok)
}

// Any member may look after the calls in the store, and no member owns a login.
func TestKeysOfCallsAreListedWhoeverOwnsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, memory := New(time.Second, elapsed()), new(resume.Memory)
		mine, other := messages.Key{Server: "s", Scope: "mine"}, messages.Key{Server: "s", Scope: "other"}
		call := messages.Key{Server: "toolset", Scope: "\x1fcall \"s\" 1"}
		require.True(t, clusterapi.IsCallKey(call))
		login := messages.Key{Server: "\x1flogin", Scope: "a"}
		require.True(t, clusterapi.IsLoginKey(login))
		store := l.Store(memory, func(key messages.Key) bool { return key == mine }, nobody)
		for _, key := range []messages.Key{call, login, other} {
			require.NoError(t, memory.Save(t.Context(), key, new(mcpbridge.Record)))
		}
		keys, err := store.Keys(t.Context())
		require.NoError(t, err)
		require.ElementsMatch(t, []messages.Key{call, login}, keys, "it has not waited for the lease")

		require.NoError(t, memory.Save(t.Context(), mine, new(mcpbridge.Record)))
		renewed := time.Now().Add(time.Second)
		time.AfterFunc(time.Second, func() { l.Renew(l.Now()) })
		keys, err = store.Keys(t.Context())
		require.NoError(t, err)
		require.ElementsMatch(t, []messages.Key{mine, call, login}, keys)
		require.Equal(t, renewed, time.Now(), "it has waited for the lease")
	})
}
