package rpc

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// callHead is the beginning of each call of the SDK. The id follows.
const callHead = `{"jsonrpc":"2.0","id":`

const (
	// The numbers of requests on the wire begin with idsFrom. idsRange, a power of 2, is how many there are. All of them
	// are positive numbers of 32 bits with a sign, because some servers keep no more bits. All have as many digits as
	// idsFrom, so that the smaller number of the SDK can replace them in place. Clients that count their requests
	// from 1 use other numbers.
	idsFrom  = 1 << 30
	idsRange = 1 << 30
	// idDigits is how many digits the numbers have.
	idDigits = len("1073741824")
	// idsBlock is the size of the first block of numbers of a connection. Each further block is twice as large,
	// up to idsBlockMax, so that a connection has few blocks.
	idsBlock    = 64
	idsBlockMax = 1 << 20
)

// idsNext counts the numbers that the connections of this process have taken.
var idsNext atomic.Uint64

func init() { idsNext.Store(rand.Uint64()) }

// IDs gives the requests of one connection numbers that no other connection has. The SDK counts
// the requests of each connection from 1. Some servers send a response to all of their
// sessions, and a server may answer a request of an earlier connection in a session that was resumed. By
// its number, the SDK would take such a response for one to a request of this connection. So on the wire
// each request has a number that no other of the last 10^9 requests of this process has. The SDK does not get a
// response with any other number. Requests of the server, and the responses to them, keep the server's ids.
//
// Each process begins with a random number. If a server sends a response to another process as well, its number
// is that of a waiting request there with a probability of one in 10^9 for each such request. Ids are numbers because
// some servers accept no text.
type IDs struct {
	strays *atomic.Uint64 // counts the responses to requests of other connections

	mu     sync.Mutex
	blocks []idBlock
	asked  int64 // the highest number of the SDK so far
}

// idBlock are consecutive numbers of a connection.
type idBlock struct {
	first int64  // the number of the SDK for the first of them
	from  uint64 // the value of idsNext for the first of them
	size  int64
}

// NewIDs returns the ids of a new connection.
func NewIDs(strays *atomic.Uint64) *IDs { return &IDs{strays: strays} }

// IDsFrom returns the ids of a connection whose numbers are those of the SDK plus 2^30, for tests.
func IDsFrom(strays *atomic.Uint64) *IDs {
	return &IDs{strays: strays, blocks: []idBlock{{0, 0, idsBlock}}}
}

// OnWire returns the number on the wire for one of the SDK.
func (i *IDs) OnWire(number int64) int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked = max(i.asked, number)
	for {
		for n := len(i.blocks) - 1; n >= 0; n-- {
			if b := i.blocks[n]; number >= b.first && number < b.first+b.size {
				return idsFrom + int64((b.from+uint64(number-b.first))%idsRange)
			}
		}
		b := idBlock{0, 0, idsBlock}
		if n := len(i.blocks); n > 0 {
			last := i.blocks[n-1]
			b.first, b.size = last.first+last.size, min(2*last.size, idsBlockMax)
		}
		b.from = idsNext.Add(uint64(b.size)) - uint64(b.size)
		i.blocks = append(i.blocks, b)
	}
}

// ofSDK returns the number of the SDK for one on the wire, if this connection has sent a request with it.
func (i *IDs) ofSDK(onWire int64) (number int64, own bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if onWire < idsFrom || onWire >= idsFrom+idsRange {
		return 0, false
	}
	for n := len(i.blocks) - 1; n >= 0; n-- {
		b := i.blocks[n]
		if at := int64((uint64(onWire) - b.from) % idsRange); at < b.size {
			return b.first + at, b.first+at <= i.asked
		}
	}
	return 0, false
}

// OnWireID returns the id on the wire for one of the SDK.
func (i *IDs) OnWireID(id jsonrpc.ID) jsonrpc.ID {
	if number, ok := id.Raw().(int64); ok {
		id, _ = jsonrpc.MakeID(float64(i.OnWire(number)))
	}
	return id
}

// Restore replaces the id of a response by that of the SDK. A text with the digits of the number is the same id. Restore
// returns false, and counts a stray, if this connection has not sent a request with the id.
func (i *IDs) Restore(resp *jsonrpc.Response) (own bool) {
	number, own := i.Number(resp.ID)
	if !own {
		i.strays.Add(1)
		return false
	}
	resp.ID, _ = jsonrpc.MakeID(float64(number))
	return true
}

// Number returns the number of the SDK for the id of a response. own is false if this connection has not sent a request
// with the id.
func (i *IDs) Number(id jsonrpc.ID) (number int64, own bool) {
	onWire, ok := numberOf(id.Raw())
	if !ok {
		return 0, false
	}
	return i.ofSDK(onWire)
}

// numberOf returns the number in an id, which may be a text.
func numberOf(id any) (number int64, ok bool) {
	if text, is := id.(string); is {
		number, err := strconv.ParseInt(text, 10, 64)
		return number, err == nil
	}
	number, ok = id.(int64)
	return number, ok
}
