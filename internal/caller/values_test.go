package caller

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type testKey struct{}

type privateKey struct{}

func (privateKey) PrivateKey() {}

func TestValuesAreThoseOfTheContextUntilTheyAreReleased(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.WithValue(context.WithValue(t.Context(), testKey{}, "mine"), privateKey{}, "hidden"))
	var v Values
	require.Nil(t, v.Value(testKey{}))
	v.Hold(ctx)
	require.Equal(t, "mine", v.Value(testKey{}))
	require.Nil(t, v.Value(privateKey{}))
	cancel(context.Canceled)
	require.Equal(t, "mine", v.Value(testKey{}), "values do not end with the context")
	require.Nil(t, v.Value(cancelKey), "and do not say why it ended")
	v.Release()
	require.Nil(t, v.Value(testKey{}))
	require.Nil(t, (*Values)(nil).Value(testKey{}))
}

// Package context looks up a key of its own to find the cause of the end of a context.
func TestKeyOfPackageContextIsKnown(t *testing.T) {
	require.NotNil(t, cancelKey)
	require.True(t, Hides(cancelKey))
	require.False(t, Hides(testKey{}))
	require.False(t, Hides(new(int)), "another key of the same type")
}

func TestReleasedValuesDoNotKeepTheContext(t *testing.T) {
	var v Values
	freed := make(chan struct{})
	func() {
		value := new([1 << 10]byte)
		runtime.AddCleanup(value, func(struct{}) { close(freed) }, struct{}{})
		v.Hold(context.WithValue(context.Background(), testKey{}, value))
	}()
	v.Release()
	require.Eventually(t, func() bool {
		runtime.GC()
		select {
		case <-freed:
			return true
		default:
			return false
		}
	}, 10*time.Second, time.Millisecond)
	runtime.KeepAlive(&v)
}
