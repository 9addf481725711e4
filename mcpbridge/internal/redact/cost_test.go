//go:build !race

package redact

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The work is bounded, and so are the allocations: not with the race detector, beside which a [sync.Pool], such as that of
// regexp, drops some of what is put back.
func TestAllocationsForATextAreBounded(t *testing.T) {
	secrets := largeCookies()
	for _, text := range alikeTexts() {
		require.Less(t, testing.AllocsPerRun(3, func() { Clean(text, secrets...) }), float64(maxText))
	}
}
