// Package cluster is a module of its own for tests that need a server of etcd or several
// processes: its dependencies are none of the library's.
//
//	go -C tests/cluster test ./...
//	go -C tests/cluster test -v -full -timeout 1h .
//
// Its own tests are scenarios on real processes on loopback: three members of a cluster
// (cmd/member), and etcd (cmd/etcd), which keeps the view or is the store that the members share. The
// MCP server (package mcpserver) runs in the process of the test, and records every execution
// and every session. Agents on all members call its tools, while a member is killed, leaves,
// is stopped, or is cut off by a network of proxies (package network), or while etcd is down.
//
// TestEveryCutOnRealProcesses has a network namespace for each member and for etcd, with a router between them that drops
// what a link does not let pass: each directed link, each two of them, undirected links, single connections; and members
// and etcd that are stopped. It needs root and iproute2, and runs only with -cuts, as make cuts does. It fails if the system
// does not allow it. Its cases run side by side, and each takes some 23 seconds.
//
// Each scenario ends with the verifier: History.Check of package history. With -v each prints a table:
// calls, failures by code, duplicate executions, sessions that kept their state, and times of
// recovery. Without -full, scenarios run with raft on the hosts, mostly without a store, and for a
// few seconds. With -logs the logs of all processes are kept.
//
// Command show has the same members, server and verifier, and prints what happens.
package cluster
