package login

import "time"

const (
	// claimPatience is how long a process sees the claim of another process before it takes it over. It is longer than [ClaimTime], also
	// because clocks do not run equally fast: by then, a holder that is alive has finished.
	claimPatience = 45 * time.Second
	// leastWait and mostWait bound how long a process waits until it looks again.
	leastWait, mostWait = 100 * time.Millisecond, 2 * time.Second
)

// claimStep is what a process does that wants to claim a login.
type claimStep int

const (
	have  claimStep = iota // nothing: the claim is its own
	take                   // claim it: it is free, or whoever had it has died
	await                  // look again later
)

// watch is what a process has seen of the claims of a login. Clocks of machines differ, so it goes by its own only.
type watch struct {
	claim string    // the ID of the one it has seen last, or empty
	since time.Time // when it was seen first
}

// see notes which claim there is now, and says what the process does whose claim has an ID, and how long it waits before.
func (w *watch) see(claim, own string, now time.Time) (step claimStep, wait time.Duration) {
	if claim != w.claim {
		*w = watch{claim, now}
	}
	seen := now.Sub(w.since)
	switch {
	case claim == own:
		return have, 0
	case claim == "" || seen >= claimPatience:
		return take, 0
	}
	return await, min(max(seen/2, leastWait), mostWait)
}
