package main

import (
	"crypto/sha256"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/asynkron/protoactor-go/cluster"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor/cluster/internal/node"
)

const kind = "mcpactor-shard"

// addressForms are the forms of addresses that are compared. Each returns the address of the
// i-th of at most so many members.
var addressForms = []struct {
	name    string
	most    int
	address func(i int) string
}{
	{"`10.0.y.z:8090`", 1000, func(i int) string { return fmt.Sprintf("10.0.%d.%d:8090", i/250, i%250+1) }},
	{"`10.x.y.z:8090`", 1000, func(i int) string {
		return fmt.Sprintf("10.%d.%d.%d:8090", mixed(i)>>16&255, mixed(i)>>8&255, mixed(i)&255)
	}},
	{"`mcpactor-17:8090`", 1000, func(i int) string { return fmt.Sprintf("mcpactor-%d:8090", i) }},
	{"`mcpactor-17.mcpactor:8090`", 1000, func(i int) string { return fmt.Sprintf("mcpactor-%d.mcpactor:8090", i) }},
	{"`127.0.0.1`, ports of the kernel", 1000, func(i int) string { return fmt.Sprintf("127.0.0.1:%d", 32768+i*7919%28232) }},
	{"`127.0.0.1`, ports 1,000 apart", 10, func(i int) string { return fmt.Sprintf("127.0.0.1:%d", 8090+1000*i) }},
	{"`127.0.0.1`, ports 1 apart", 1000, func(i int) string { return fmt.Sprintf("127.0.0.1:%d", 8081+i) }},
}

// identityForms are the forms of the identity of a shard that are compared.
var identityForms = []struct {
	name     string
	identity func(shard int) string
}{
	{"`17`", strconv.Itoa},
	{"`00000017`", func(i int) string { return fmt.Sprintf("%08d", i) }},
	{"16 mixed hex digits", func(i int) string { return fmt.Sprintf("%016x", mixed(i)) }},
	{"16 mixed hex digits, `-17`", func(i int) string { return fmt.Sprintf("%016x-%d", mixed(i), i) }},
	{"`17-`, 16 mixed hex digits", func(i int) string { return fmt.Sprintf("%d-%016x", i, mixed(i)) }},
	{"SHA-256 in hex", func(i int) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(strconv.Itoa(i)))) }},
}

// mixed is a bijection of 64-bit numbers with full avalanche (the last step of SplitMix64).
func mixed(i int) uint64 {
	n := uint64(i) + 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// key is the identity of the i-th key, if it is a grain of its own.
func key(i int) string { return fmt.Sprintf("browser/conversation-%d", i) }

// keyNumber returns the number of 64 bits of the i-th key. Modulo the number of shards it is the
// key's shard, as in internal/node.
func keyNumber(i int) uint64 {
	key := messages.Key{Server: "browser", Scope: fmt.Sprintf("conversation-%d", i)}
	return uint64(node.ShardOf(key, 1<<62)) // the numbers of shards here are powers of two
}

// members returns the addresses of the first n members.
func members(n int, address func(int) string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = address(i)
	}
	return all
}

// engine returns the rendezvous of Proto.Actor with the given members. Their ids have the order
// of the addresses: with equal scores the member with the smallest id is selected.
func engine(addresses []string) *cluster.Rendezvous {
	all := make(cluster.Members, len(addresses))
	for i, address := range addresses {
		host, port, _ := net.SplitHostPort(address)
		number, _ := strconv.Atoi(port)
		all[i] = &cluster.Member{Id: fmt.Sprintf("%08d", i), Host: host, Port: int32(number), Kinds: []string{kind}}
	}
	rendezvous := cluster.NewRendezvous()
	rendezvous.UpdateMembers(all)
	return rendezvous
}

// fold continues FNV-1a of 32 bits from state h.
func fold(h uint32, text string) uint32 {
	for i := range len(text) {
		h = (h ^ uint32(text[i])) * 16777619
	}
	return h
}

// start returns the state of the hash after an identity, from which each member's address continues it.
func start(identity string) uint32 { return fold(2166136261, identity) }

// owner returns which member the engine selects for an identity, and its score, without the
// engine's allocations and locks. TestOwnersAreThoseOfTheEngine compares the two.
func owner(identity string, addresses []string) (member int, score uint32) {
	from := start(identity)
	for i, address := range addresses {
		if s := fold(from, address); s > score {
			member, score = i, s
		}
	}
	return member, score
}

// owners returns the owners of the identities 0 to n-1.
func owners(n int, identity func(int) string, addresses []string) []int {
	all := make([]int, n)
	for i := range all {
		all[i], _ = owner(identity(i), addresses)
	}
	return all
}

// spread says how evenly something is distributed over members, each relative to the mean.
type spread struct {
	least, p99, most float64
	none             int // how many members have nothing
}

func spreadOf(perMember []int) spread {
	sorted := slices.Sorted(slices.Values(perMember))
	total := 0
	for _, n := range sorted {
		total += n
	}
	n := len(sorted)
	mean := float64(total) / float64(n)
	none, _ := slices.BinarySearch(sorted, 1)
	return spread{float64(sorted[0]) / mean, float64(sorted[(n-1)*99/100]) / mean, float64(sorted[n-1]) / mean, none}
}

// perMember counts how much each member owns. A weight is how much an identity counts, 1 if there are no weights.
func perMember(members int, owners, weights []int) []int {
	counts := make([]int, members)
	for i, member := range owners {
		if weights == nil {
			counts[member]++
		} else {
			counts[member] += weights[i]
		}
	}
	return counts
}
