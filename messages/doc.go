// Package messages defines the messages to and from a supervisor: commands, replies,
// failures, events, and the requests of servers, with the keys that they carry. The
// parameters and results are the types of the MCP Go SDK.
//
// All messages are pointers to structs, and immutable once they are sent. Commands are
// imperative, events are in the past tense, replies are nouns. A message that is printed or
// logged shows no arguments and no results.
package messages
