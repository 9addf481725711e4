// Package wire records what goes over the wire for one operation, and derives from that what an
// error means.
package wire
