// Package cluster is a module of its own for tests that need a server of etcd or several
// processes: its dependencies are none of the library's.
//
//	go -C tests/cluster test ./...
package cluster
