package guard

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPanicBecomesAnErrorWithItsStack(t *testing.T) {
	value, err := Call(func() (int, error) { panic("oops") })
	require.Zero(t, value)
	var p *Panic
	require.ErrorAs(t, err, &p)
	require.Equal(t, "panic: oops", p.Brief())
	require.Contains(t, err.Error(), "panic: oops\ngoroutine ")
	require.Contains(t, err.Error(), "guard_test.go")

	value, err = Call(func() (int, error) { return 7, nil })
	require.NoError(t, err)
	require.Equal(t, 7, value)
}
