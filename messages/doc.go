// Package messages contains what is sent to a supervisor and what comes from it: keys,
// commands, replies, failures, events, and the requests of servers. The parameters and
// results are the types of the MCP Go SDK.
//
// All messages are pointers to structs, and immutable once they are sent. Commands are
// imperative, events are in the past tense, replies are nouns. No message prints arguments
// or results.
package messages
