// Package bench measures what a cluster costs: calls to sessions on another member beside calls to
// sessions of the same member, through a supervisor without a cluster, and on a bare session of the
// SDK. It has benchmarks only, so that no program links the cluster because of them.
//
// All members run in the process of the benchmark, and talk to each other over loopback.
// Allocations and CPU time are therefore those of both members. The server over HTTP is a process
// of its own. docs/performance.md has the figures, and the commands.
package bench
