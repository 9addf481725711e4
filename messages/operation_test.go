package messages

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryOperationHasARow(t *testing.T) {
	var names []string
	for op := range Operations() {
		names = append(names, reflect.TypeOf(op).Elem().Name())
	}
	require.ElementsMatch(t, declared(t, "Header"), names)
}

func TestOperationThatDoesNotSayWhetherItIsIdempotentIsNot(t *testing.T) {
	require.False(t, (&struct{ Header }{}).Idempotent())
}
