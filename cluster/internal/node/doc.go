// Package node routes commands to the members of a cluster that own their keys.
//
// A node is an actor in front of the supervisor of its member:
//
//	agent ──▶ node ──▶ supervisor                     a key of this member
//	agent ──▶ node ══ link ══▶ node ──▶ supervisor    a key of another one
//
// Keys belong to shards. The owner of a shard follows from the view. The node serves the shards that all others
// have ceded, and releases those that have moved.
//
// The actor passes each message to the part that it is for. What timers, other goroutines and processes have it do is a [task], made
// by the part itself. A part has its own state, and may know parts above it in
// this list. What it needs of others says an interface: [placing] is where commands belong, [follower] what follows from
// the membership.
//
//   - base.go: what all parts share
//   - peer.go: another member, and what is sent to it
//   - membership.go: the view, and the place of this member in it; links.go and heartbeat.go: who is reached
//   - shards.go: which shards are served here, and how they move
//   - events.go: events of other members
//   - bindings.go: the bindings of scopes, on which all members agree
//   - questions.go: questions to handlers of other members, and from there
//   - proxies.go: the processes that stand for actors of other members
//   - routing.go: commands of callers here; exchange.go: such a command; ending.go: how it ends without a reply
//   - serving.go: commands of callers on other members
//   - gathering.go: commands to all members, whose replies package replies merges
//   - leaving.go: how this member leaves
//
// The rest is the node's own:
//
//   - config.go: what package cluster and the node tell each other
//   - node.go: the actor, and a table of its messages
//   - commands.go: what becomes of a command
//   - follow.go: what follows from the membership for all parts
//   - encoded.go, decode.go: what goes over the network
//   - process.go: PIDs without an actor, which pass on what they get
//   - outside.go: timers, work in other goroutines, and the order of what is sent
//
// A node decides with package view, and has no connections of its own: they are behind [Network].
package node
