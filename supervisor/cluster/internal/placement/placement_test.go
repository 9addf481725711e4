package main

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/stretchr/testify/require"
)

func TestOwnersAreThoseOfTheEngine(t *testing.T) {
	for _, form := range addressForms {
		for _, n := range []int{2, 3, 10, min(101, form.most)} {
			addresses := members(n, form.address)
			rendezvous := engine(addresses)
			for i := range 300 {
				for _, identity := range []string{strconv.Itoa(i), key(i)} {
					member, _ := owner(identity, addresses)
					got := rendezvous.GetByClusterIdentity(&cluster.ClusterIdentity{Kind: kind, Identity: identity})
					require.Equal(t, addresses[member], got, "%s, %d members, identity %s", form.name, n, identity)
				}
			}
		}
	}
}

func TestMembersHaveAddressesOfTheirOwn(t *testing.T) {
	for _, form := range addressForms {
		seen := map[string]bool{}
		for _, address := range members(form.most, form.address) {
			require.False(t, seen[address], address)
			seen[address] = true
		}
	}
}

// With equal scores the member with the smallest id is selected.
func TestTiesGoToTheMemberWithTheSmallestID(t *testing.T) {
	addresses := []string{"10.0.0.1:8090", "10.0.0.1:8090"}
	for i := range 100 {
		member, _ := owner(strconv.Itoa(i), addresses)
		require.Zero(t, member)
	}
	all := cluster.Members{
		{Id: "b", Host: "10.0.0.1", Port: 8090, Kinds: []string{kind}},
		{Id: "a", Host: "10.0.0.1", Port: 8090, Kinds: []string{kind}},
	}
	require.Equal(t, "a", all.ToSet().Members()[0].Id)
}

// A join moves shards only to the new member, and a leave only those of the member that left.
func TestOnlyTheShardsOfTheMemberMove(t *testing.T) {
	all := members(101, addressForms[0].address)
	with, without := engine(all), engine(all[:100])
	moved := 0
	for i := range 4096 {
		identity := &cluster.ClusterIdentity{Kind: kind, Identity: strconv.Itoa(i)}
		if owner := with.GetByClusterIdentity(identity); owner != without.GetByClusterIdentity(identity) {
			require.Equal(t, all[100], owner)
			moved++
		}
	}
	require.InDelta(t, 4096/101, moved, 25)
}

func TestSpread(t *testing.T) {
	require.Equal(t, spread{least: 0, p99: 1, most: 2, none: 1}, spreadOf([]int{0, 3, 6}))
	require.Equal(t, []int{1, 0, 2}, perMember(3, []int{2, 0, 2}, nil))
	require.Equal(t, []int{5, 0, 8}, perMember(3, []int{2, 0, 2}, []int{7, 5, 1}))
}

// Silence is counted from the last news, also at the end.
func TestSilence(t *testing.T) {
	longest, expelled := silence(2, 100)
	require.LessOrEqual(t, longest, 2)
	require.Zero(t, expelled)
	longest, expelled = silence(400, 2)
	require.Equal(t, 2, longest)
	require.Zero(t, expelled, "two rounds are shorter than the expiry")
}

func TestARoundOfGossipIsMeasured(t *testing.T) {
	g := newGossip(20)
	g.fill()
	require.Positive(t, g.measure())
	require.Positive(t, g.memory())
}

// The page has what the program prints: the rows that take little time are computed anew, and of
// what is measured the first lines are compared.
func TestPageHasTheTables(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/scale.md")
	require.NoError(t, err)
	for _, table := range tables {
		found := block(table.name).FindStringSubmatch(string(text))
		require.NotNil(t, found, table.name)
		lines := strings.Split(strings.TrimSpace(table.format(true)), "\n")
		if !table.fixed {
			lines = lines[:2]
		}
		for _, line := range lines {
			require.Contains(t, found[1], line+"\n", "%s: go run ./supervisor/cluster/internal/placement docs/scale.md", table.name)
		}
	}
}

func TestReplace(t *testing.T) {
	page := "a\n<!-- placement: x -->\nold\n<!-- placement end -->\nb\n"
	require.Equal(t, "a\n<!-- placement: x -->\n$1\n<!-- placement end -->\nb\n", replace(page, "x", "$1\n"))
	require.Equal(t, page, replace(page, "y", "new"))
	require.Equal(t, "1,234,567", count(1234567))
	require.Equal(t, "123", count(123))
}

func TestNeeded(t *testing.T) {
	require.Equal(t, 3, needed(1, 100))
	require.Equal(t, 5, needed(400, 100), "the fullest of 5 has 1.06 of the mean, which is 80")
	n := needed(20_000, 100)
	require.LessOrEqual(t, 20_000/float64(n)*fullest(n), 100.0)
	require.Greater(t, 20_000/float64(n-1)*fullest(n-1), 100.0)
}
