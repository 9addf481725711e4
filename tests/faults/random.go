package faults

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"
)

// Random says which faults the calls of a script meet by chance: see [Script.FailsAtRandom].
type Random struct {
	// Seed decides which calls meet which fault.
	Seed uint64
	// Share is the share of the calls that meet a fault, up to 1. Defaults to 0.2.
	Share float64
	// Faults are those that calls meet, with the same chance. One that is there twice is
	// chosen twice as often. Defaults to all [Names].
	Faults []Name
	// Limit is how many faults a call meets that is sent again and again. Defaults to no
	// limit.
	Limit int
}

// random chooses faults. The script's lock guards it.
type random struct {
	Random
	script *Script
	expiry Expiry         // the form in which the server refuses sessions
	sent   map[string]int // how often each call was sent, by its words
	met    map[string]int // how many faults it has met
}

// FailsAtRandom makes calls of the tools of the script meet faults by chance, in addition to
// those in their steps: the call meets the fault, and the next call meets the step. Sessions
// expire in one of the forms in [Expiries]. If the test fails, the seed, the faults and the
// command that runs it again are logged. The last FailsAtRandom counts. Call stop to let no further call meet a fault.
//
// The fault of a call depends on the seed, on its key, tool and arguments, and on how often
// this call was sent before. So the same seed chooses the same faults, whatever the order in
// which the calls of several agents come in. This order is not repeated, not even in a bubble
// of testing/synctest.
func (s *Script) FailsAtRandom(chances Random) (stop func()) {
	s.t.Helper()
	if chances.Share == 0 {
		chances.Share = 0.2
	}
	if chances.Faults == nil {
		chances.Faults = Names()
	}
	for _, name := range chances.Faults {
		if _, err := Named(name); err != nil {
			s.t.Fatalf("%v", err)
			return func() {}
		}
	}
	r := &random{Random: chances, script: s, sent: map[string]int{}, met: map[string]int{}}
	forms := Expiries()
	r.expiry = forms[r.source("").IntN(len(forms))]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.random = r
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Log(r)
		}
	})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.random == r {
			s.random = nil
		}
	}
}

// choose returns the fault that a call meets, or nil.
func (r *random) choose(c Call) *step {
	call := words(c)
	source := r.source(fmt.Sprint(call, r.sent[call]))
	r.sent[call]++
	hit, name := source.Float64() < r.Share, r.Faults[source.IntN(len(r.Faults))]
	if !hit || r.Limit > 0 && r.met[call] >= r.Limit {
		return nil
	}
	r.met[call]++
	fault, _ := Named(name) // FailsAtRandom has checked the name
	if name == SessionExpired {
		fault = r.script.Forget(r.expiry)
	}
	return &step{name: name, fault: fault}
}

// source returns the random numbers for one decision.
func (r *random) source(decision string) *rand.Rand {
	return rand.New(rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "%d %s %s", r.Seed, r.script.name, decision))))
}

// String returns the faults that calls have met, in words.
func (r *random) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "faults: script %q with seed %d, expiry in the form %q:", r.script.name, r.Seed, r.expiry.Name)
	calls := r.script.Calls()
	for _, c := range calls {
		if c.Fault != "" {
			fmt.Fprintf(&out, "\n%10v %s: %s", c.Time.Sub(calls[0].Time).Round(time.Millisecond), words(c), c.Fault)
		}
	}
	name := strings.Split(r.script.t.Name(), "/")
	for i := range name {
		name[i] = "^" + regexp.QuoteMeta(name[i]) + "$"
	}
	fmt.Fprintf(&out, "\nrun it again, in the folder of the test: go test -run '%s' -count=1", strings.Join(name, "/"))
	return out.String()
}

// words returns a call in words. They are equal for calls with the same key, tool and
// arguments.
func words(c Call) string {
	arguments, _ := json.Marshal(c.Arguments) // they came as JSON
	return fmt.Sprintf("%s: %s %s", c.Key.Scope, c.Tool, arguments)
}
