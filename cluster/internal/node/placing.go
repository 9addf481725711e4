package node

// The node says where commands belong, as its membership and its shards have it.

func (n *node) ownerOf(shard int) (other *peer, own bool) { return n.members.ownerOf(shard) }

func (n *node) whyFenced() string { return n.members.whyFenced() }

func (n *node) serves(shard int) bool { return n.shards.Serves(shard) }

// leaves reports whether the member leaves the cluster.
func (n *node) leaves() bool { return n.leaving != nil }

// isLast reports whether the member leaves, and no other one is there that its calls could go to.
func (n *node) isLast() bool { return n.leaving != nil && n.members.inside && n.members.owners.None() }
