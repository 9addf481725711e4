package main

import (
	"fmt"
	"math"
)

// What the plan assumes. docs/scale.md says where each figure comes from.
const (
	scopes        = 10_000_000
	withoutStream = 10.00 * 1024      // bytes of an idle session: docs/performance.md, idle
	withStream    = 39.87 * 1024      // likewise
	collector     = 2                 // with GOGC=100 the heap grows to twice what is alive
	memberMemory  = 12 << 30          // for sessions, of 16 GiB
	ports         = 60999 - 32768 + 1 // local ports for connections to one address of a server
	opening       = 2.978e-3          // seconds for a session and its first call: docs/performance.md, first
	callsAgain    = 60                // seconds within which all conversations that moved call again
	beatsEach     = 2                 // heartbeats to each other member in a second: every quarter of a lease of 2 s
	pollsEach     = 2                 // requests to each other member in a second: automanaged, every 0.5 s
	renewalsEach  = 2                 // of a registration in etcd, in a second: every quarter of a lease of 2 s
	gossipsEach   = gossipFanOut / 3  // messages of gossip in a second: package cluster gossips every 3 s
)

// fullest is how much more than the mean the fullest member has: the balance with 65,536 shards.
func fullest(members int) float64 {
	switch {
	case members <= 3:
		return 1.04
	case members <= 10:
		return 1.06
	case members <= 100:
		return 1.25
	default:
		return 1.60
	}
}

// needed returns the smallest number of members, 3 or more, whose fullest has no more than most
// of a total.
func needed(total, most float64) int {
	n := 3
	for total/float64(n)*fullest(n) > most {
		n++
	}
	return n
}

// planTable shows how many members 10 million scopes need.
func planTable(bool) string {
	var rows [][]string
	for _, open := range []int{1, 10, 100} {
		for _, stream := range []bool{false, true} {
			sessions := float64(scopes * open / 100)
			each, with := withoutStream*collector, "no"
			if stream {
				each, with = withStream*collector, "yes"
			}
			byMemory := needed(sessions*each, memberMemory)
			row := []string{
				fmt.Sprintf("%d %%", open), with, count(int(sessions)), fmt.Sprintf("%.3g GiB", sessions*each/(1<<30)), count(byMemory),
			}
			if stream {
				sockets := sessions / float64(byMemory) * fullest(byMemory)
				row = append(row, count(int(math.Ceil(sockets))), count(needed(sessions, ports)))
			} else {
				row = append(row, "0", "-")
			}
			rows = append(rows, row)
		}
	}
	return markdown(2, []string{
		"open at once", "streams", "sessions", "memory of all", "members by memory", "streams of the fullest member", "members by ports",
	}, rows)
}

// loadTable shows what the members of a cluster cost each other.
func loadTable(bool) string {
	var rows [][]string
	for _, n := range []int{3, 10, 30, 100, 300, 1000} {
		others := n - 1
		rows = append(rows, []string{
			count(n), count(2 * others), count(n * others), count(2 * beatsEach * others), count(2 * beatsEach * n * others),
			count(gossipsEach), count(pollsEach * n), count(renewalsEach * n), count(n),
		})
	}
	return markdown(0, []string{
		"members", "connections of a member", "of all", "heartbeats and answers of a member", "of all", "gossip of a member",
		"automanaged: polls of a member", "etcd: renewals", "etcd: events of a join",
	}, rows)
}

// leaveTable shows what the leave of a member costs.
func leaveTable(bool) string {
	var rows [][]string
	for _, c := range []struct{ sessions, members int }{
		{1_000_000, 3}, {1_000_000, 10}, {10_000_000, 20}, {10_000_000, 100}, {10_000_000, 1000},
	} {
		moved := float64(c.sessions) / float64(c.members)
		rate := moved / callsAgain
		each := rate / float64(c.members-1)
		rows = append(rows, []string{
			count(c.sessions), count(c.members), count(int(moved)), count(int(moved * fullest(c.members))),
			count(int(math.Ceil(rate))), fmt.Sprintf("%.1f", each), fmt.Sprintf("%.2g", each*opening),
		})
	}
	return markdown(0, []string{
		"open sessions", "members", "moved", "fullest", "opened per second", "by each member", "seconds of work per second",
	}, rows)
}
