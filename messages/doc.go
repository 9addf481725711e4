// Package messages holds what is said: keys, commands, replies, failures and
// events. It is plain data, and names the parameter and result types of the MCP
// Go SDK, so that callers keep the types they know.
//
// All messages are pointers to structs, immutable once sent. Commands are
// imperative, events are past tense, replies are nouns. None of them prints
// arguments or results.
package messages
