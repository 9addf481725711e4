// Package batch has the commands exec and tools: they use the servers of a configuration file.
//
// The way of a request of exec:
//
//	stdin ─▶ line ─▶ request ─▶ job ─▶ schedule ─▶ supervisor.Client
//	                             │                        │ reply
//	stdout ◀── JSON line ◀── response ◀───────────────────┘
//	                │
//	                └◀── event queue ◀── events and progress
package batch
