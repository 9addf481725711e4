package rpc

import (
	"math/rand/v2"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// callHead is how the SDK begins each call. The id comes next.
const callHead = `{"jsonrpc":"2.0","id":`

const (
	// idsFrom is the least number that a request has on the wire. It has more digits than
	// any number of the SDK, so that such a number can replace it in place.
	idsFrom = 1 << 40
	// idsRange is a power of 2. JavaScript has all integers up to 2^53.
	idsRange = 1 << 52
	// idsStep is the golden section of idsRange: however many connections there have
	// been, their numbers are spread about evenly.
	idsStep = 0x9E3779B97F4A7
)

// idsNext is the number from which the next connection of this process counts.
var idsNext atomic.Uint64

func init() { idsNext.Store(rand.Uint64()) }

// IDs gives the requests of one connection numbers that no other connection has. The SDK counts
// the requests of each connection from 1. Some servers send a response to all of their
// sessions, and a server may still answer a request of an earlier connection in the session
// that this connection is attached to. By its number the SDK would take such a response for one
// to a request of its own. So on the wire each connection counts from a number of its own, and
// a response with any other number is kept from the SDK. Requests of the server, and our
// responses to them, keep the server's ids.
//
// The connections of this process are at least 10^9 numbers apart until there have been a
// million of them, and those of another process are unlikely to meet them. Ids are
// numbers because some servers accept no text.
type IDs struct {
	before int64          // the number before the first
	asked  atomic.Int64   // the highest number of the SDK so far
	strays *atomic.Uint64 // counts the responses to requests of other connections
}

// NewIDs returns the ids of a new connection.
func NewIDs(strays *atomic.Uint64) *IDs {
	return IDsFrom(idsFrom+int64(idsNext.Add(idsStep)%idsRange), strays)
}

// IDsFrom returns the ids of a connection that counts from a given number, for tests.
func IDsFrom(before int64, strays *atomic.Uint64) *IDs {
	return &IDs{before: before, strays: strays}
}

// OnWire returns the number on the wire for one of the SDK.
func (i *IDs) OnWire(number int64) int64 {
	for asked := i.asked.Load(); number > asked && !i.asked.CompareAndSwap(asked, number); {
		asked = i.asked.Load()
	}
	return i.before + number
}

// OnWireID returns the id on the wire for one of the SDK.
func (i *IDs) OnWireID(id jsonrpc.ID) jsonrpc.ID {
	if number, ok := id.Raw().(int64); ok {
		id, _ = jsonrpc.MakeID(float64(i.OnWire(number)))
	}
	return id
}

// Restore replaces the id of a response by the one of the SDK. It returns false, and counts a stray,
// if this connection has not sent such a request.
func (i *IDs) Restore(resp *jsonrpc.Response) (own bool) {
	if onWire, ok := resp.ID.Raw().(int64); ok {
		if number := onWire - i.before; number > 0 && number <= i.asked.Load() {
			resp.ID, _ = jsonrpc.MakeID(float64(number))
			return true
		}
	}
	i.strays.Add(1)
	return false
}
