// Package registry has the registry, the parent of all sessions. It routes messages to the parts that decide which session a
// key has, who may dial and who is evicted. Package actors describes both actors, and these parts.
package registry
