// Package node routes commands to the members of a cluster that own their keys.
//
// A node is an actor in front of the supervisor of its member:
//
//	agent ──▶ node ──▶ supervisor                     a key of this member
//	agent ──▶ node ══ link ══▶ node ──▶ supervisor    a key of another one
//
// Keys belong to shards. A shard is a virtual actor, which Proto.Actor's cluster activates on
// one member. The node knows which shards are active here, asks the previous owners to release
// them first, and releases those that have moved. Read the files in this order:
//
//   - config.go: what package cluster and the node tell each other
//   - node.go: the actor, and a table of its messages
//   - route.go: commands of callers here
//   - serve.go: commands of callers on other members
//   - shard.go: which shards are active here, and how they move
//   - peer.go: the other members
//   - heartbeat.go: heartbeats, and the lease that they renew
//   - leave.go: how this member leaves
//   - envelope.go: what goes over the network
//   - gather.go: commands to all members
//   - binding.go: the bindings of scopes, on which all members agree
//   - proxy.go: actors of other members, and questions to and from them
//   - event.go: events of other members
//   - process.go: PIDs without an actor, which pass on what they get
//   - outside.go: timers, work in other goroutines, and the order of what is sent
//
// A node imports nothing of Proto.Actor's cluster: the engine is behind [Network].
package node
