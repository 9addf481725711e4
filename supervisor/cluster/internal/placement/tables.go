package main

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
)

// keys is how many keys are placed.
const keys = 1_000_000

// sizes are the numbers of members that are simulated; the quick ones take less than a second.
func sizes(quick bool) []int {
	if quick {
		return []int{3, 10}
	}
	return []int{3, 10, 100, 1000}
}

var shardCounts = []int{1024, 4096, 16384, 65536, 262144}

func ratio(f float64) string { return fmt.Sprintf("%.2f", f) }

func percent(f float64) string { return fmt.Sprintf("%.3g %%", 100*f) }

// addressTable compares forms of addresses.
func addressTable(quick bool) string {
	var rows [][]string
	for _, form := range addressForms {
		for _, n := range sizes(quick) {
			if n > form.most {
				continue
			}
			const shards = 65536
			s := spreadOf(perMember(n, owners(shards, strconv.Itoa, members(n, form.address)), nil))
			rows = append(rows, []string{form.name, count(n), ratio(s.least), ratio(s.p99), ratio(s.most)})
		}
	}
	return markdown(1, []string{"addresses", "members", "least", "p99", "most"}, rows)
}

// identityTable compares forms of the identity of a shard.
func identityTable(bool) string {
	var rows [][]string
	for _, form := range identityForms {
		row := []string{form.name}
		for _, c := range []struct{ members, shards int }{{3, 4096}, {10, 4096}, {100, 16384}} {
			s := spreadOf(perMember(c.members, owners(c.shards, form.identity, members(c.members, addressForms[0].address)), nil))
			row = append(row, ratio(s.least)+" to "+ratio(s.most))
		}
		rows = append(rows, row)
	}
	return markdown(1, []string{"identity of shard 17", "3 members, 4,096 shards", "10 members, 4,096 shards", "100 members, 16,384 shards"}, rows)
}

// balanceTable shows the balance by members and shards, with a grain per key at the end.
func balanceTable(quick bool) string {
	var numbers []uint64
	for i := range keys {
		numbers = append(numbers, keyNumber(i))
	}
	var rows [][]string
	for _, n := range sizes(quick) {
		addresses := members(n, addressForms[3].address)
		most := shardCounts[len(shardCounts)-1]
		if quick {
			most = 65536
		}
		all := owners(most, strconv.Itoa, addresses)
		for _, shards := range shardCounts {
			if shards > most {
				continue
			}
			weights := make([]int, shards)
			for _, number := range numbers {
				weights[number%uint64(shards)]++
			}
			row := []string{count(n), count(shards)}
			for _, s := range []spread{
				spreadOf(perMember(n, all[:shards], nil)),
				spreadOf(perMember(n, all[:shards], weights)),
			} {
				row = append(row, ratio(s.least), ratio(s.p99), ratio(s.most))
				if len(row) > 5 {
					row = append(row, count(s.none))
				}
			}
			rows = append(rows, row)
		}
		if !quick {
			s := spreadOf(perMember(n, owners(keys, key, addresses), nil))
			rows = append(rows, []string{count(n), "grain per key", "", "", "", ratio(s.least), ratio(s.p99), ratio(s.most), count(s.none)})
		}
	}
	return markdown(0, []string{
		"members", "shards", "shards: least", "p99", "most", "keys: least", "p99", "most", "members without a key",
	}, rows)
}

// moveTable shows which part of the keys a join or a leave moves.
func moveTable(quick bool) string {
	var rows [][]string
	for _, n := range sizes(quick) {
		const shards = 65536
		addresses := members(n, addressForms[3].address)
		scores := make([]uint32, shards)
		counts := make([]int, n)
		for i := range shards {
			member, score := owner(strconv.Itoa(i), addresses)
			counts[member]++
			scores[i] = score
		}
		const joiners = 20
		var sum, least, most float64 = 0, 1, 0
		for j := range joiners {
			moved, address := 0, addressForms[3].address(n+j)
			for i, score := range scores {
				if fold(start(strconv.Itoa(i)), address) > score {
					moved++
				}
			}
			part := float64(moved) / shards
			sum, least, most = sum+part/joiners, math.Min(least, part), math.Max(most, part)
		}
		s := spreadOf(counts)
		ideal := 1 / float64(n)
		rows = append(rows, []string{
			count(n),
			percent(1 / float64(n+1)), percent(sum), percent(least) + " to " + percent(most),
			percent(ideal), percent(ideal), percent(ideal*s.least) + " to " + percent(ideal*s.most),
		})
	}
	return markdown(0, []string{
		"members", "join: ideal", "mean", "20 joins", "leave: ideal", "mean", "all leaves",
	}, rows)
}

// timeTable measures how long a member computes owners after a change of the topology.
func timeTable(quick bool) string {
	var rows [][]string
	for _, n := range sizes(quick) {
		addresses := members(n, addressForms[3].address)
		rendezvous := engine(addresses)
		each := shortest(n, func(i int) {
			rendezvous.GetByClusterIdentity(&cluster.ClusterIdentity{Kind: kind, Identity: strconv.Itoa(i)})
		})
		lean := shortest(n, func(i int) { owner(strconv.Itoa(i), addresses) })
		row := []string{count(n), rounded(each)}
		for _, shards := range []int{4096, 16384, 65536} {
			row = append(row, rounded(each*time.Duration(shards)), rounded(lean*time.Duration(shards)))
		}
		rows = append(rows, row)
	}
	return markdown(0, []string{"members", "one owner", "4,096 shards", "lean", "16,384 shards", "lean", "65,536 shards", "lean"}, rows)
}

// shortest returns the time of an owner of n members, in the fastest of some batches, since other
// programs disturb the others.
func shortest(n int, of func(i int)) time.Duration {
	best, batch := time.Hour, 20_000/n+1
	for range 20 {
		began := time.Now()
		for i := range batch {
			of(i)
		}
		best = min(best, time.Since(began)/time.Duration(batch))
	}
	return best
}

// rounded formats a duration with two digits.
func rounded(d time.Duration) string {
	digits := math.Pow(10, math.Floor(math.Log10(float64(d)))-1)
	return time.Duration(math.Round(float64(d)/digits) * digits).String()
}
