// Package node routes commands to the members of a cluster that own their keys.
//
// A node is an actor in front of the supervisor of its member:
//
//	agent ──▶ node ──▶ supervisor                     a key of this member
//	agent ──▶ node ══ link ══▶ node ──▶ supervisor    a key of another one
//
// Keys belong to shards. A shard is a virtual actor, which Proto.Actor's cluster activates on
// one member. The node knows which shards are active here, asks the previous owners to release
// them first, and releases those that have moved. See the files: route.go for the commands of
// callers here, serve.go for those of callers elsewhere, shard.go, peer.go for the members,
// gather.go for commands to all of them, binding.go for the bindings of scopes, proxy.go for PIDs of
// other members.
//
// A node imports nothing of Proto.Actor's cluster: the engine is behind [Network].
package node
