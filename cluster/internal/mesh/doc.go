// Package mesh carries messages between the members of a cluster, over streams of gRPC.
//
//	Link ══ lane: queue ══ stream ══▶ door ──▶ count ──▶ Config.Received     messages
//	  ◀─────────────── count ────────────────────────────────────────────    acknowledgements
//
// A [Mesh] has a [Link] to each other member that it was told of. A link has one connection, which this
// member dials, for its messages; those of the other member come on a connection that the other dials.
// Each connection has a stream for each lane that is used:
//
//   - small messages, in their order
//   - large ones, in their order: gRPC lets streams take turns, so that small messages do not wait for them
//   - casts, which may be lost: they are neither kept nor sent again
//
// Package link decides what is sent again when a stream breaks. A receiver ends the previous stream of a
// lane before it tells the next one what it has, so that nothing comes twice. Streams are flow-controlled
// by gRPC; a queue is bounded in bytes.
//
// A stream begins with a hello, in its header, that says the name of the cluster, the version of the
// protocol, who the caller is, and for which incarnation the stream is. The door reads nothing else of a
// caller that is not a member of this cluster, by name, by incarnation and, with TLS, by the host in its
// certificate, and tells it nothing. A mesh dials the addresses of its links only.
//
// Both sides notice within seconds that a connection is dead: see [silence].
package mesh
