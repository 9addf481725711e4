package adopt

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A client writes its file while adopt has read it, and has not written it yet.
func TestFileThatHasChangedMeanwhileStays(t *testing.T) {
	u := newUser(t)
	path := u.writes("mcp.json", plain)
	err := replace(path, []byte("former"), []byte(adopted))
	require.EqualError(t, err, path+" has changed meanwhile: run the command again")
	require.Equal(t, plain, u.reads(path))
	require.NoError(t, replace(path, []byte(plain), []byte(adopted)))
	require.Equal(t, adopted, u.reads(path))
}
