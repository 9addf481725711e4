// Package exec is the command that runs many requests: JSON lines in, JSON lines out.
//
// The way of a request:
//
//	stdin ─▶ line ─▶ request ─▶ job ─▶ schedule ─▶ supervisor.Client
//	                             │                        │ reply
//	stdout ◀── JSON line ◀── response ◀───────────────────┘
//	                │
//	                └◀── event queue ◀── events and progress
package exec
