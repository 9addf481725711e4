// Package node routes commands to the members of a cluster that own their keys.
//
// A node is an actor in front of the supervisor of its member:
//
//	agent ──▶ node ──▶ supervisor                     a key of this member
//	agent ──▶ node ══ link ══▶ node ──▶ supervisor    a key of another one
//
// Keys belong to shards. The owner of a shard follows from the view. The node serves the shards that all others
// have ceded, and releases those that have moved. Read the files in this order:
//
//   - config.go: what package cluster and the node tell each other
//   - node.go: the actor, and a table of its messages
//   - base.go: what the parts share
//   - route.go: commands of callers here
//   - serve.go: commands of callers on other members
//   - shard.go: which shards are served here, and how they move
//   - membership.go: the view, and the place of this member in it
//   - peer.go: the other members
//   - heartbeat.go: heartbeats, which say who is reached, and what is held
//   - leave.go: how this member leaves
//   - envelope.go: what goes over the network
//   - encoded.go: how it is encoded
//   - gather.go: commands to all members, whose replies package replies merges
//   - bindings.go: the bindings of scopes, on which all members agree
//   - proxies.go: actors of other members
//   - questions.go: questions to and from handlers of other members
//   - events.go: events of other members
//   - process.go: PIDs without an actor, which pass on what they get
//   - outside.go: timers, work in other goroutines, and the order of what is sent
//
// A node decides with package view, and has no connections of its own: they are behind [Network].
package node
