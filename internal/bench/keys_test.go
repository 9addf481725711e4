package bench

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// keyRecorder records the keys that are called, in order.
type keyRecorder struct{ called []string }

func (r *keyRecorder) call(_ context.Context, key string) error {
	r.called = append(r.called, key)
	return nil
}
func (*keyRecorder) drop(context.Context, string) error { return nil }
func (*keyRecorder) close() error                       { return nil }

func TestRotationBeginsWithKeysThatAreNotOpen(t *testing.T) {
	rec := &keyRecorder{}
	r, err := rotated(1, 1, 3, 1, route{}, func(route) (client, error) { return rec, nil })(t.Context())
	require.NoError(t, err)
	_, err = r.round(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, []string{"conversation-0", "conversation-1", "conversation-2", "conversation-0", "conversation-1"}, rec.called)
}
