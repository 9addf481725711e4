// Package bench measures what supervision costs, and what it saves, always next to
// baselines: the bare session of the SDK, a session for each call, the map with a
// mutex that everybody writes first, and clients of other libraries.
//
// A [Case] is one piece of work with its contenders. [Run] lets them take turns in
// short rounds, in another order each time, so that what disturbs the machine
// disturbs all of them; ratios are the medians over the rounds, each taken within
// one round. The [Report] is printed as a table, as JSON, in the format of Go's
// benchmarks, and as the tables and plots of docs/performance.md.
//
// The server of all HTTP and stdio cases is this program again, as a process of its
// own: see [Serve]. So allocations are those of the client side alone, but for the
// server in memory. Everything listens on loopback only.
package bench
