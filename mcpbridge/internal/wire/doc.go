// Package wire keeps what is known of one operation from what went over the wire, and says
// what an error means in the light of that.
package wire
