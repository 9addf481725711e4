// Package link decides what of the messages for another member is sent, and sent again after a
// connection has broken.
//
// An [Outbox] is one direction of a link between two incarnations of members. Messages cross on a
// connection that keeps their order; their numbers are their positions. The receiver counts them,
// acknowledges the count now and then, and says it first on each new connection. What can happen to a
// message when a connection breaks:
//
//   - It was not written: it waits for the next connection, and can be withdrawn.
//   - It was written, and has not arrived: the count on the next connection is below it. It waits again,
//     and can be withdrawn again.
//   - It was written, and has arrived: it is in the count, and is not sent again.
//   - There is no next connection, because the peer has ended: it may have arrived if it was written, and
//     has not if it was not.
//
// So a message arrives once, in its order, or is known not to have arrived, or may have arrived at a peer
// that has ended.
//
// The package has no goroutines, locks and clocks. Package mesh has the connections.
package link
