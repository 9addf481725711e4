package mcpserver

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"
)

const (
	// addressRate and addressBurst bound how fast wrong tokens from one address are answered, a second, and allRate and allBurst how
	// fast those from all addresses are.
	addressRate, addressBurst = 1, 5
	allRate, allBurst         = 20, 100
	// maxDelay bounds the delay of an answer.
	maxDelay = 10 * time.Second
	// maxDelayed bounds the requests whose answers are delayed. Others are refused at once.
	maxDelayed = 500
	// maxAddresses bounds the addresses that are remembered. The one that was wrong least recently is forgotten first.
	maxAddresses = 1000
)

// wrongTokens delays the answers to wrong tokens, so that programs that try one after the other are slow. It cannot prevent guessing:
// the right token is never delayed, so that nobody can lock it out, and it therefore must be too long to be guessed.
type wrongTokens struct {
	mu        sync.Mutex
	all       *rate.Limiter
	addresses *simplelru.LRU[netip.Prefix, *rate.Limiter]
	delayed   int
}

// wait waits until the answer to a wrong token is due, or the client has gone. It returns false if too many wait.
func (t *wrongTokens) wait(r *http.Request) bool {
	address, _ := netip.ParseAddrPort(r.RemoteAddr)
	delay := t.delay(address.Addr(), time.Now())
	if delay == 0 {
		return true
	}
	if !t.enter() {
		return false
	}
	defer t.leave()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
	return true
}

// enter returns false if too many wait.
func (t *wrongTokens) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.delayed == maxDelayed {
		return false
	}
	t.delayed++
	return true
}

func (t *wrongTokens) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.delayed--
}

// delay returns how long the answer to a wrong token from an address is delayed.
func (t *wrongTokens) delay(address netip.Addr, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = rate.NewLimiter(allRate, allBurst)
		t.addresses, _ = simplelru.NewLRU[netip.Prefix, *rate.Limiter](maxAddresses, nil) // its size is positive
	}
	own := networkOf(address)
	limiter, found := t.addresses.Get(own)
	if !found {
		limiter = rate.NewLimiter(addressRate, addressBurst)
		t.addresses.Add(own, limiter)
	}
	return max(delayOf(limiter, now), delayOf(t.all, now))
}

// delayOf takes a turn of a limiter, and returns how long it is until then.
func delayOf(limiter *rate.Limiter, now time.Time) time.Duration {
	turn := limiter.ReserveN(now, 1)
	delay := turn.DelayFrom(now)
	if delay > maxDelay {
		turn.CancelAt(now) // or else the queue would grow without end
		return maxDelay
	}
	return delay
}

// networkOf returns the addresses that belong to one machine: with IPv6 it can choose from 2^64.
func networkOf(address netip.Addr) netip.Prefix {
	address = address.Unmap()
	bits := address.BitLen()
	if address.Is6() {
		bits = 64
	}
	network, _ := address.Prefix(bits) // the zero one, if the address is not known
	return network
}
