package login_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/login"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
)

// keep claims a login and saves data.
func keep(t *testing.T, s login.Store, id, data string) {
	t.Helper()
	c, err := s.Claim(t.Context(), id)
	require.NoError(t, err)
	defer c.Release()
	require.NoError(t, c.Save(t.Context(), []byte(data)))
}

func TestSharedNeedsAStoreAndASecret(t *testing.T) {
	_, err := login.Shared(new(resume.Memory), make([]byte, 31))
	require.EqualError(t, err, "login: the secret has 31 bytes: use 32 random ones or more")
	_, err = login.Shared(nil, secret)
	require.EqualError(t, err, "login: the store is nil")
}

func TestSharedLoginsAreEncrypted(t *testing.T) {
	m := new(resume.Memory)
	s := shared(t, m)
	keep(t, s, "https://example.com/mcp", "hush-token")
	keys, err := m.Keys(t.Context())
	require.NoError(t, err)
	require.Equal(t, []messages.Key{recordkey.Login("https://example.com/mcp")}, keys)
	record, err := m.Load(t.Context(), keys[0])
	require.NoError(t, err)
	require.NotContains(t, string(record.Login), "hush")
	require.NotContains(t, fmt.Sprintf("%v %s", keys, record), "example.com")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		require.NotContains(t, fmt.Sprintf(verb, s), "secret of at least")
	}
}

// What cannot be read is not overwritten, whatever the reason.
func TestSharedLoginThatCannotBeReadStays(t *testing.T) {
	m := new(resume.Memory)
	key := recordkey.Login("a")
	keep(t, shared(t, m), "a", "token")
	keep(t, shared(t, m), "b", "token of b")
	intact, err := m.Load(t.Context(), key)
	require.NoError(t, err)
	ofB, err := m.Load(t.Context(), recordkey.Login("b"))
	require.NoError(t, err)
	changed := bytes.Clone(intact.Login)
	changed[len(changed)/2] ^= 1
	otherSecret, err := login.Shared(m, bytes.Repeat([]byte("x"), 32))
	require.NoError(t, err)
	for name, one := range map[string]struct {
		store login.Store
		bytes []byte
	}{
		"another secret": {otherSecret, intact.Login},
		"a changed byte": {shared(t, m), changed},
		"cut":            {shared(t, m), intact.Login[:len(intact.Login)-1]},
		"one byte":       {shared(t, m), intact.Login[:1]},
		"nothing":        {shared(t, m), nil},
		"that of b":      {shared(t, m), ofB.Login},
	} {
		record := *intact
		record.Login = one.bytes
		require.NoError(t, m.Save(t.Context(), key, &record))
		const want = "the login that is kept cannot be read: it was written with another secret, or somebody has changed it"
		_, err = one.store.Load(t.Context(), "a")
		require.EqualError(t, err, want, name)
		_, err = one.store.Claim(t.Context(), "a")
		require.EqualError(t, err, want, name)
		now, err := m.Load(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, &record, now, name)
	}

	require.NoError(t, m.Save(t.Context(), key, intact))
	c, err := shared(t, m).Claim(t.Context(), "a")
	require.NoError(t, err)
	record := *intact
	record.Login = changed
	require.NoError(t, m.Save(t.Context(), key, &record))
	require.ErrorContains(t, c.Save(t.Context(), []byte("new")), "somebody has changed it")
	c.Release()
	now, err := m.Load(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, &record, now)
}

// A claim that was taken over changes nothing any more, also after the one that took it over has deleted the login.
func TestClaimThatWasTakenOverChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(resume.Memory)
		one, other := shared(t, m), shared(t, m)
		lost, err := one.Claim(t.Context(), "a")
		require.NoError(t, err)
		began := time.Now()
		taken, err := other.Claim(t.Context(), "a")
		require.NoError(t, err)
		require.InDelta(t, 46, time.Since(began).Seconds(), 1)
		holds := func(want string) {
			t.Helper()
			require.EqualError(t, lost.Save(t.Context(), []byte("late")), "the claim of the login was lost: another process has taken it over")
			data, err := one.Load(t.Context(), "a")
			require.NoError(t, err)
			require.Equal(t, want, string(data))
		}
		holds("")
		require.NoError(t, taken.Save(t.Context(), []byte("new")))
		holds("new")
		require.NoError(t, taken.Save(t.Context(), nil))
		holds("")
		taken.Release()
		holds("")
		lost.Release()
		keep(t, one, "a", "later")
		holds("later")
	})
}

// A process that asks again and again, each time for less than 45 seconds, takes over as well.
func TestPatienceIsThatOfTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(resume.Memory)
		_, err := shared(t, m).Claim(t.Context(), "a") // of one that dies
		require.NoError(t, err)
		s := shared(t, m)
		for range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			_, err := s.Claim(ctx, "a")
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c, err := s.Claim(ctx, "a")
		require.NoError(t, err)
		c.Release()
	})
}

// broken is a store whose next writes fail, after they have been saved or before.
type broken struct {
	resume.Memory
	fail      atomic.Int32
	saveFirst bool
	onSwap    func()
}

var errBroken = errors.New("broken")

func (b *broken) Swap(ctx context.Context, key messages.Key, from uint64, record *mcpbridge.Record) (bool, error) {
	if b.onSwap != nil {
		b.onSwap()
	}
	if b.fail.Add(-1) < 0 {
		return b.Memory.Swap(ctx, key, from, record)
	}
	if b.saveFirst {
		if _, err := b.Memory.Swap(ctx, key, from, record); err != nil {
			return false, err
		}
	}
	return false, errBroken
}

// A write that has failed may have been done.
func TestWritesThatFailLeaveNoClaimBehind(t *testing.T) {
	for _, saveFirst := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := &broken{saveFirst: saveFirst}
			s := shared(t, b)
			began := time.Now()
			b.fail.Store(1)
			c, err := s.Claim(t.Context(), "a")
			if !saveFirst {
				require.ErrorIs(t, err, errBroken)
				c, err = s.Claim(t.Context(), "a")
			}
			require.NoError(t, err)
			b.fail.Store(3)
			require.NoError(t, c.Save(t.Context(), []byte("token")))
			data, err := s.Load(t.Context(), "a")
			require.NoError(t, err)
			require.Equal(t, "token", string(data))
			c.Release()
			require.Less(t, time.Since(began), time.Second)

			c, err = s.Claim(t.Context(), "a")
			require.NoError(t, err)
			b.fail.Store(1000)
			b.saveFirst = false
			began = time.Now()
			err = c.Save(t.Context(), []byte("lost"))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, errBroken)
			require.Equal(t, 10*time.Second, time.Since(began))
			b.fail.Store(0)
			c.Release()
			c, err = s.Claim(t.Context(), "a")
			require.NoError(t, err)
			require.Equal(t, 10*time.Second, time.Since(began))
			c.Release()
		})
	}
}

// Who gives up while its claim is written leaves none.
func TestClaimOfOneThatGivesUpIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(broken)
		ctx, cancel := context.WithCancel(t.Context())
		b.onSwap = cancel
		_, err := shared(t, b).Claim(ctx, "a")
		require.ErrorIs(t, err, context.Canceled)
		began := time.Now()
		keep(t, shared(t, b), "a", "token")
		require.Zero(t, time.Since(began))
	})
}
