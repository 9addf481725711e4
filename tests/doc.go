// Package tests injects faults from outside: only messages go in, only replies
// and events come out. Every scenario ends with the same verifier, see
// world.verify.
//
// Scenarios about the order and the time of things run on a fake dialer inside
// testing/synctest. What the wire looks like runs on real sockets (http_test.go)
// and real processes (process_test.go).
//
// The tests name the rows of the project's fault catalogue that they cover.
package tests
