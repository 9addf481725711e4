package identity

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

type thing struct{ _ [64]byte }

func TestIdentityInMemoryIsNeverThatOfAnother(t *testing.T) {
	require.Empty(t, Of[thing](nil))
	kept := &thing{}
	first := Of(kept)
	seen := map[string]bool{first: true}
	for i := range 10_000 {
		id := Of(new(thing)) // many of them have the address of one before
		require.False(t, seen[id])
		seen[id] = true
		if i%1000 == 0 {
			runtime.GC()
		}
	}
	require.Equal(t, first, Of(kept))
	require.Eventually(t, func() bool {
		runtime.GC()
		mu.Lock()
		defer mu.Unlock()
		return len(names) == 1
	}, 10e9, 1e6, "those of values that are gone are forgotten")
	runtime.KeepAlive(kept)
}

func TestSumsOfDifferentTextsDiffer(t *testing.T) {
	seen := map[string]int{}
	for i, lists := range [][][]string{
		{}, {{}}, {{}, {}}, {{""}}, {{"", ""}}, {{"a", "b"}}, {{"ab"}}, {{"a"}, {"b"}}, {{"a", "b"}, {}}, {{"1:a"}}, {{"ren\xe9"}}, {{"ren\xe8"}}, {{"ren\ufffd"}},
	} {
		sum := NewSum()
		for _, list := range lists {
			sum.Add(list...)
		}
		require.NotContains(t, seen, sum.String(), "%d", i)
		seen[sum.String()] = i
	}
	one, two := NewSum(), NewSum()
	one.AddMap(map[string]string{"a": "b", "c": "d"})
	two.Add("a", "b", "c", "d")
	require.Equal(t, two.String(), one.String())
}
