package callbook

import (
	"context"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// swapperOf returns a store as one that compares. alone is called before a change if no other process may use it.
func swapperOf(store mcpbridge.Store, alone func()) mcpbridge.Swapper {
	if s, is := store.(mcpbridge.Swapper); is {
		return s
	}
	return &exclusive{store, alone, newTurn()}
}

// exclusive is a store that cannot compare, and that no other process uses: one change after the other.
type exclusive struct {
	mcpbridge.Store
	alone func()
	turn  turn
}

// Swap saves a record if the version is from.
func (s *exclusive) Swap(ctx context.Context, key messages.Key, from uint64, record *mcpbridge.Record) (bool, error) {
	s.alone()
	s.turn.take()
	defer s.turn.end()
	known, err := s.Load(ctx, key)
	switch {
	case err != nil:
		return false, err
	case known == nil && from != 0, known != nil && known.Version != from:
		return false, nil
	}
	if record == nil {
		return true, s.Delete(ctx, key)
	}
	return true, s.Save(ctx, key, record)
}

// turn lets one goroutine after the other use something, also while it waits for a store: a mutex is not for that.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take() { t <- struct{}{} }

func (t turn) end() { <-t }
