package messages

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOperationThatDoesNotSayWhetherItIsIdempotentIsNot(t *testing.T) {
	require.False(t, (&struct{ Header }{}).Idempotent())
}
