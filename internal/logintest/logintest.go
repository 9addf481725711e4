// Package logintest tests stores of logins.
package logintest

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/login"
)

// Run checks a store. Open returns two values of the same empty store, as two processes have them.
func Run(t *testing.T, open func(*testing.T) (one, other login.Store)) {
	for name, check := range map[string]func(t *testing.T, one, other login.Store){
		"what one saves the others load":        saved,
		"what is deleted is not there":          deleted,
		"a store shares nothing with callers":   copied,
		"ids are apart":                         apart,
		"a claim waits until the other ends":    waits,
		"nobody waits longer than its context":  ended,
		"a claim sees what the last one saved":  counted,
		"a claim that has changed nothing ends": unchanged,
	} {
		t.Run(name, func(t *testing.T) {
			one, other := open(t)
			check(t, one, other)
		})
	}
}

func claim(t *testing.T, s login.Store, id string) login.Claim {
	t.Helper()
	c, err := s.Claim(t.Context(), id)
	require.NoError(t, err)
	return c
}

// save saves data under a claim of its own.
func save(t *testing.T, s login.Store, id string, data []byte) {
	t.Helper()
	c := claim(t, s, id)
	defer c.Release()
	require.NoError(t, c.Save(t.Context(), data))
}

// has checks what a store has. nil is nothing.
func has(t *testing.T, s login.Store, id string, want []byte) {
	t.Helper()
	got, err := s.Load(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func saved(t *testing.T, one, other login.Store) {
	has(t, one, "a", nil)
	c := claim(t, one, "a")
	for _, data := range []string{"first", "second", "second", "\x00\xff" + strings.Repeat("long ", 1000)} {
		require.NoError(t, c.Save(t.Context(), []byte(data)))
		has(t, other, "a", []byte(data))
		got, err := c.Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, data, string(got))
	}
	c.Release()
	has(t, one, "a", []byte("\x00\xff"+strings.Repeat("long ", 1000)))
}

func deleted(t *testing.T, one, other login.Store) {
	save(t, one, "a", nil)
	has(t, other, "a", nil)
	save(t, one, "a", []byte("x"))
	save(t, other, "a", nil)
	has(t, one, "a", nil)
	save(t, one, "a", []byte("y"))
	has(t, other, "a", []byte("y"))
}

func copied(t *testing.T, one, _ login.Store) {
	data := []byte("mine")
	c := claim(t, one, "a")
	defer c.Release()
	require.NoError(t, c.Save(t.Context(), data))
	clear(data)
	got, err := c.Load(t.Context())
	require.NoError(t, err)
	clear(got)
	got, err = one.Load(t.Context(), "a")
	require.NoError(t, err)
	clear(got)
	has(t, one, "a", []byte("mine"))
}

func apart(t *testing.T, one, other login.Store) {
	ids := []string{"", "a", "A", "a/b", "../a", "\xff", "\xfe", "https://example.com/mcp", strings.Repeat("x", 5000)}
	for i, id := range ids {
		c := claim(t, one, id)
		defer c.Release()
		require.NoError(t, c.Save(t.Context(), []byte(strconv.Itoa(i))))
	}
	for i, id := range ids {
		has(t, other, id, []byte(strconv.Itoa(i)))
	}
}

// moment is for what must not happen.
const moment = 300 * time.Millisecond

func waits(t *testing.T, one, other login.Store) {
	for _, s := range []login.Store{one, other} {
		held := claim(t, one, "a")
		claimed := make(chan struct{})
		go func() {
			defer close(claimed)
			c, err := s.Claim(t.Context(), "a")
			if err != nil {
				t.Error(err)
				return
			}
			c.Release()
		}()
		select {
		case <-claimed:
			t.Error("two have the claim")
		case <-time.After(moment):
		}
		held.Release()
		<-claimed
	}
}

func ended(t *testing.T, one, other login.Store) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := one.Load(over, "a")
	require.ErrorIs(t, err, context.Canceled)
	_, err = one.Claim(over, "a")
	require.ErrorIs(t, err, context.Canceled)
	held := claim(t, other, "a")
	for _, s := range []login.Store{one, other} {
		soon, cancel := context.WithTimeout(t.Context(), moment)
		_, err = s.Claim(soon, "a")
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.ErrorIs(t, held.Save(over, []byte("x")), context.Canceled)
	_, err = held.Load(over)
	require.ErrorIs(t, err, context.Canceled)
	has(t, one, "a", nil)
	held.Release()
	save(t, one, "a", []byte("y"))
}

func counted(t *testing.T, one, other login.Store) {
	const goroutines, each = 6, 4
	var inside atomic.Int32
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() {
			for range each {
				if err := count(t.Context(), []login.Store{one, other}[i%2], &inside); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	has(t, one, "a", bytes.Repeat([]byte("+"), goroutines*each))
}

// count adds one to what is kept.
func count(ctx context.Context, s login.Store, inside *atomic.Int32) error {
	c, err := s.Claim(ctx, "a")
	if err != nil {
		return err
	}
	defer c.Release()
	defer inside.Add(-1)
	if inside.Add(1) != 1 {
		return errors.New("two have the claim")
	}
	data, err := c.Load(ctx)
	if err != nil {
		return err
	}
	return c.Save(ctx, append(data, '+'))
}

func unchanged(t *testing.T, one, other login.Store) {
	save(t, one, "a", []byte("x"))
	c := claim(t, other, "a")
	got, err := c.Load(t.Context())
	require.NoError(t, err)
	require.Equal(t, "x", string(got))
	c.Release()
	has(t, one, "a", []byte("x"))
	claim(t, one, "a").Release()
}
