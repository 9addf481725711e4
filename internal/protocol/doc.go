// Package protocol has the messages that only packages of this module send: a supervisor and the
// node of a cluster to a registry, and the registry to the node. Commands of callers are in
// package messages.
package protocol
