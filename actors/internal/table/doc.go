// Package table is what the registry knows of its keys and sessions: which there are, in which states, how many calls
// each has, of which tenant and server it is. It decides nothing. A [Table] belongs to one
// registry; it is not safe for concurrent use.
package table
