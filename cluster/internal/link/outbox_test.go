package link

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// run drives an outbox through connections that break: next returns a number below a bound, which decides about what
// happens next. A model of the receiver has what has come.
func run(t *testing.T, steps int, next func(below int) int) {
	var (
		box       Outbox
		all       []*Sent
		withdrawn = map[uint64]bool{}
		wire      []Message // written on this connection, and not yet come
		got       []uint64
		connected bool
		told      int // what the receiver has acknowledged
	)
	resume := func() {
		connected, wire, told = true, nil, len(got)
		require.True(t, box.Resume(uint64(told)))
		for _, s := range all { // what has not come can be withdrawn, and what has come cannot
			if !slices.Contains(got, s.ID) && !withdrawn[s.ID] {
				require.False(t, s.written)
			}
		}
	}
	for range steps {
		switch next(8) {
		case 0, 1:
			s, err := box.Add(Message{ID: uint64(len(all)), Body: make([]byte, next(100))}, false)
			require.NoError(t, err)
			all = append(all, s)
		case 2:
			if len(all) > 0 {
				if s := all[next(len(all))]; !withdrawn[s.ID] && box.Withdraw(s) {
					withdrawn[s.ID] = true
				}
			}
		case 3:
			connected, wire = false, nil // whatever is on its way is lost
		case 4:
			resume()
		case 5, 6:
			if connected {
				wire = append(wire, box.Take(nil, next(1000))...)
			}
			n := next(len(wire) + 1)
			for _, m := range wire[:n] {
				got = append(got, m.ID)
			}
			wire = wire[n:]
		case 7:
			if connected {
				told += next(len(got) - told + 1)
				require.True(t, box.Acknowledged(uint64(told)))
			}
		}
	}
	resume()
	for _, m := range box.Take(nil, 1<<30) {
		got = append(got, m.ID)
	}
	require.True(t, box.Acknowledged(uint64(len(got))))
	require.True(t, box.Idle())
	require.Zero(t, box.Held())
	var want []uint64
	for _, s := range all {
		if !withdrawn[s.ID] {
			want = append(want, s.ID)
		}
	}
	require.Equal(t, want, got, "each message comes once, in its order, unless it was withdrawn")
}

func TestMessagesArriveOnceOrAreKnownNotToHaveArrived(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		run(t, 200, r.IntN)
	}
}

func FuzzOutbox(f *testing.F) {
	f.Add([]byte("a few choices, in whatever order"))
	f.Fuzz(func(t *testing.T, choices []byte) {
		run(t, min(len(choices), 200), func(below int) int {
			if len(choices) == 0 {
				return 0
			}
			c := choices[0]
			choices = choices[1:]
			return int(c) % below
		})
	})
}

func TestOutboxIsBounded(t *testing.T) {
	var box Outbox
	_, err := box.Add(Message{Body: make([]byte, MaxMessage+1)}, true)
	require.ErrorIs(t, err, ErrLarge)
	_, err = box.Add(Message{Body: make([]byte, MaxMessage)}, false)
	require.NoError(t, err)
	_, err = box.Add(Message{}, false)
	require.ErrorIs(t, err, ErrFull)
	_, err = box.Add(Message{}, true)
	require.NoError(t, err)
}

func TestPeerCannotHaveWhatWasNotSent(t *testing.T) {
	var box Outbox
	for range 3 {
		_, err := box.Add(Message{}, false)
		require.NoError(t, err)
	}
	require.Len(t, box.Take(nil, 0), 1, "one, however large")
	require.False(t, box.Acknowledged(2))
	require.False(t, box.Resume(2))
	require.True(t, box.Acknowledged(1))
	require.False(t, box.Acknowledged(0))
	require.False(t, box.Resume(0))
}

func TestDroppedMessagesAreWithdrawn(t *testing.T) {
	var box Outbox
	written, err := box.Add(Message{}, false)
	require.NoError(t, err)
	require.Len(t, box.Take(nil, 0), 1)
	waits, err := box.Add(Message{}, false)
	require.NoError(t, err)
	box.Drop()
	require.False(t, box.Withdraw(written))
	require.True(t, box.Withdraw(waits))
	require.Zero(t, box.Held())
}

func TestOldestMessagesAreTrimmed(t *testing.T) {
	var box Outbox
	for id := range uint64(5) {
		_, err := box.Add(Message{ID: id}, false)
		require.NoError(t, err)
	}
	box.Trim(2)
	require.Equal(t, []Message{{ID: 3}, {ID: 4}}, box.Take(nil, 1<<20))
}
