package nearest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNearestNameIsTheOneThatWasMeant(t *testing.T) {
	names := []string{"echo", "search", "list_files", "a"}
	for name, want := range map[string]string{
		"ecko": "echo", "ehco": "echo", "Echo": "echo", "serch": "search", "listFiles": "list_files", "lst_filse": "list_files",
		"b": "", "ecstasy": "", "": "", strings.Repeat("x", maxName+1): "",
	} {
		require.Equal(t, want, Of(name, names), name)
	}
	require.Empty(t, Of("echo", nil))
}
