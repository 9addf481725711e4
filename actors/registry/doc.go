// Package registry has the registry, the parent of all sessions: which session a key has, who may
// dial, who is evicted, and what is known of servers. Package actors describes both actors.
package registry
