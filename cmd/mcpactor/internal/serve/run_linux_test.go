package serve

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOneProcessorIsUsedUnlessTheUserSaysOtherwise(t *testing.T) {
	before := runtime.GOMAXPROCS(3)
	defer runtime.GOMAXPROCS(before)
	t.Setenv("GOMAXPROCS", "3")
	useOneProcessor()
	require.Equal(t, 3, runtime.GOMAXPROCS(0))
	os.Unsetenv("GOMAXPROCS")
	useOneProcessor()
	require.Equal(t, 1, runtime.GOMAXPROCS(0))
}
