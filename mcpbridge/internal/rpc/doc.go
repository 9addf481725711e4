// Package rpc reads and rewrites JSON-RPC messages and event streams as bytes, without decoding
// more of them than needed. It knows nothing of sessions.
package rpc
