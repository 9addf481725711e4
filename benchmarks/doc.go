// Package benchmarks measures what supervision costs and what it saves, beside baselines: a raw
// HTTP request with the same bytes, a bare session of the SDK, a session for each call, a map of
// sessions behind a mutex, and clients of other libraries.
//
// The benchmarks are plain Go benchmarks for Unix. Their names have dimensions, such as
// transport=http-json/callers=64/how=mcpactor, which benchstat compares with -col /how. The script
// page runs them in rounds, in which the contenders take turns.
//
// The servers over HTTP and stdio are the test binary, started as processes of their own.
// Therefore allocations and CPU time are those of the client, except where the server is in memory.
// Servers listen on loopback only.
package benchmarks
