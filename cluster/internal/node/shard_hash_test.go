package node

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

// Members of different versions work side by side, so that the shards of keys must not change.
func TestShardsOfKeysDoNotChange(t *testing.T) {
	for key, shard := range map[messages.Key]int{
		{Server: "s"}: 1423,
		{Server: "browser", Scope: "conversation-1"}:             3400,
		{Server: "browser", Scope: "conversation-2"}:             1760,
		{Server: "files", Scope: "tenant/7b1f0c9e/conversation"}: 1104,
	} {
		require.Equal(t, shard, ShardOf(key, 4096), "%v", key)
	}
}

func TestTheServerAndTheScopeAreHashedApart(t *testing.T) {
	require.NotEqual(t, ShardOf(messages.Key{Server: "ab", Scope: "c"}, 1<<20), ShardOf(messages.Key{Server: "a", Scope: "bc"}, 1<<20))
}

// Keys that differ little are spread as evenly as a random function spreads them: chi-squared divided
// by its degrees of freedom is 1 on average then, with a standard deviation of 0.022 for 4,096 shards.
func TestKeysAreSpreadEvenly(t *testing.T) {
	const shards, each = 4096, 50
	for name, key := range map[string]func(i int) messages.Key{
		"counted": func(i int) messages.Key { return messages.Key{Server: "s", Scope: fmt.Sprint(i)} },
		"counted, padded": func(i int) messages.Key {
			return messages.Key{Server: "s", Scope: fmt.Sprintf("conversation-%012d", i)}
		},
		"counted first": func(i int) messages.Key {
			return messages.Key{Server: "s", Scope: fmt.Sprintf("%d/conversation/of/a/tenant", i)}
		},
		"two bytes": func(i int) messages.Key {
			return messages.Key{Server: "s", Scope: string([]byte{byte(i >> 16), byte(i >> 8), byte(i)})}
		},
		"many servers": func(i int) messages.Key {
			return messages.Key{Server: fmt.Sprint("server-", i%10), Scope: fmt.Sprint(i / 10)}
		},
	} {
		counts := make([]float64, shards)
		for i := range shards * each {
			counts[ShardOf(key(i), shards)]++
		}
		var chi float64
		for _, n := range counts {
			chi += (n - each) * (n - each) / each
		}
		require.InDelta(t, 1, chi/(shards-1), 0.15, name)
	}
}
