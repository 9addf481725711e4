// Package bench measures what supervision costs and what it saves, beside baselines: a
// bare session of the SDK, a session for each call, a map of sessions behind a mutex,
// and clients of other libraries.
//
// [Run] measures cases. The contenders of a case are all open at the same time and take
// turns in short rounds, in a different order each time, so that a disturbance of the
// machine affects all of them. Contenders are compared within a round, and the median
// over the rounds counts. A [Report] holds a result for each round, in the format of
// Go's benchmarks, which benchstat reads; it also writes the tables of
// docs/performance.md.
//
// The servers over HTTP and stdio are this program, started as processes of their own:
// see [Serve]. Therefore allocations and CPU time are those of the client, except where
// the server is in memory. Servers listen on loopback only.
package bench
