package seal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

type state struct{ Server, ID string }

func TestOnlyTheSameKeyAndPurposeOpen(t *testing.T) {
	key, err := New([]byte("secret"))
	require.NoError(t, err)
	again, err := New([]byte("secret"))
	require.NoError(t, err)
	other, err := New(nil)
	require.NoError(t, err)
	text, err := key.Seal("task", state{"a", "t1"})
	require.NoError(t, err)
	var got state
	require.True(t, again.Open("task", text, &got))
	require.Equal(t, state{"a", "t1"}, got)
	require.False(t, other.Open("task", text, &got))
	require.False(t, again.Open("round", text, &got))
	for i := range text { // whichever character is another one
		changed := []byte(text)
		if changed[i]++; changed[i] > 'z' {
			changed[i] = 'A'
		}
		require.False(t, again.Open("task", string(changed), &got), i)
	}
	for _, none := range []string{"", "t1", text[:10], text + "A", "é"} {
		require.False(t, again.Open("task", none, &got))
	}
	_, err = key.Seal("task", func() {})
	require.Error(t, err)
}

func TestNameIsTheSameEachTime(t *testing.T) {
	key, err := New([]byte("secret"))
	require.NoError(t, err)
	again, err := New([]byte("secret"))
	require.NoError(t, err)
	other, err := New([]byte("another"))
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, purpose := range []string{"task", "tas"} {
		for _, value := range []state{{"a", "t1"}, {"b", "t1"}, {"a", "t2"}, {"at1", ""}} {
			text, err := key.SealName(purpose, value)
			require.NoError(t, err)
			same, err := again.SealName(purpose, value)
			require.NoError(t, err)
			require.Equal(t, text, same)
			require.False(t, seen[text])
			seen[text] = true
			var got state
			require.True(t, again.Open(purpose, text, &got))
			require.Equal(t, value, got)
			require.False(t, other.Open(purpose, text, &got))
			require.False(t, key.Open(purpose+"!", text, &got))
		}
	}
	_, err = key.SealName("task", func() {})
	require.Error(t, err)
}
