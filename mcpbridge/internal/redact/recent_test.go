package redact

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRecentValuesAreBounded(t *testing.T) {
	var r Recent
	for i := range 100 {
		require.True(t, r.Add(fmt.Sprint("a-long-value-", i), 10))
		require.False(t, r.Add(fmt.Sprint("a-long-value-", i), 10))
		require.Len(t, r.values, min(i+1, 10))
		require.Equal(t, r.values[len(r.values)-1], fmt.Sprint("a-long-value-", i))
	}
}
