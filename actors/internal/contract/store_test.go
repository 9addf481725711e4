package contract

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// one is a store with one record.
type one struct{ record mcpbridge.Record }

func (s *one) Load(context.Context, messages.Key) (*mcpbridge.Record, error) {
	record := s.record
	return &record, nil
}

func (s *one) Save(_ context.Context, _ messages.Key, record *mcpbridge.Record) error {
	s.record = *record
	return nil
}
func (*one) Delete(context.Context, messages.Key) error         { return nil }
func (*one) Keys(context.Context) (all []messages.Key, _ error) { return all, nil }

// Guarantee 8: while a session is closed, the store may get another one of its key, which is left open.
func TestOnlyTheSessionThatWasClosedIsForgotten(t *testing.T) {
	for name, row := range map[string]struct {
		before, after mcpbridge.Record
	}{
		"it is there":                          {record("closed", 7), record("", 7)},
		"it is there with a later generation":  {record("closed", 9), record("", 9)},
		"another one":                          {record("other", 8), record("other", 8)},
		"another one of an earlier generation": {record("other", 1), record("other", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			s := &one{row.before}
			store := KeyStore{Cfg: &Config{Config: protocol.Config{Store: s, CloseTimeout: time.Second}}}
			store.Forget("closed", 7)
			require.Equal(t, row.after, s.record)
		})
	}
}

func record(sessionID string, generation uint64) mcpbridge.Record {
	return mcpbridge.Record{Resume: mcpbridge.Resume{SessionID: sessionID}, Generation: generation}
}
