package login_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/login"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
)

var seedsFlag = flag.Int("seeds", 30, "how many simulations of members that share a login run")

// Members of a cluster share one login, whose refresh token is good for one request. They die at each step, and their store may fail.
func TestMembersThatDieShareALogin(t *testing.T) {
	met := map[string]int{}
	for seed := range uint64(*seedsFlag) {
		synctest.Test(t, func(t *testing.T) {
			simulate(t, seed, new(resume.Memory), seed%2 == 1, met)
		})
	}
	for _, what := range []string{
		"refreshed", "refreshed by another", "refused", "died before sending", "died after sending", "died after saving",
		"gave up", "taken over", "swap failed", "swap failed and was saved",
	} {
		require.NotZero(t, met[what], "%s: %v", what, met)
	}
	t.Log(met)
}

func TestMembersThatDieShareALoginInAFile(t *testing.T) {
	for seed := range uint64(2) {
		synctest.Test(t, func(t *testing.T) {
			f, err := resume.Open(filepath.Join(t.TempDir(), "sessions"), resume.Config{})
			require.NoError(t, err)
			defer func() { require.NoError(t, f.Close()) }()
			simulate(t, seed, f, seed%2 == 1, map[string]int{})
		})
	}
}

const (
	members   = 5
	simulated = time.Hour // of each simulation
	validFor  = time.Minute
)

// token is what is kept. Refresh is good once.
type token struct {
	Refresh int
	Until   time.Time
	Ended   bool // a person has to log in
}

// simulation has the authorization server, and what all members do. Its mutex guards all of it.
type simulation struct {
	mu       sync.Mutex
	t        *testing.T
	seed     uint64
	store    *flaky
	met      map[string]int
	current  int         // the refresh token that is good
	ended    bool        // the login, at the authorization server
	endKnown bool        // somebody has kept that
	uses     map[int]int // how often each refresh token was used
	lost     map[int]int // how often whoever used it has died, or given up, before it kept the answer
	waiting  map[*member]time.Time
	free     time.Time // when the last claim ended
	died     bool      // by the death of its holder
}

// member is one life of a member.
type member struct {
	*simulation
	*rand.Rand
	logins login.Store
	used   int // the refresh token that it has used, until it has kept the answer
}

func simulate(t *testing.T, seed uint64, store mcpbridge.Swapper, failing bool, met map[string]int) {
	s := &simulation{
		t: t, seed: seed, met: met, uses: map[int]int{}, lost: map[int]int{}, waiting: map[*member]time.Time{}, free: time.Now(),
	}
	s.store = &flaky{Swapper: store, failing: failing, s: s, rand: rand.New(rand.NewPCG(seed, members))}
	over := time.Now().Add(simulated)
	var all sync.WaitGroup
	for i := range uint64(members) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, i))
			for time.Now().Before(over) && !t.Failed() {
				s.life(random, over)
				time.Sleep(between(random, time.Second, time.Minute))
			}
		})
	}
	all.Wait()
}

// life is one of a member, until it dies.
func (s *simulation) life(random *rand.Rand, over time.Time) {
	m := &member{simulation: s, Rand: random, logins: shared(s.t, s.store)}
	for time.Now().Before(over) && !s.t.Failed() {
		time.Sleep(between(random, 0, 20*time.Second))
		if died := m.use(); died {
			return
		}
	}
}

// use has a token that is valid, as a request needs it. It reports whether the member has died.
func (m *member) use() (died bool) {
	known, err := m.kept(m.logins.Load(m.t.Context(), "a"))
	switch {
	case err != nil:
		return false
	case known.Ended || known.Refresh == 0:
		if m.IntN(4) == 0 {
			m.person()
		}
		return false
	case time.Now().Before(known.Until):
		return false
	}
	claim := m.claim()
	if claim == nil {
		return false
	}
	known, err = m.kept(claim.Load(m.t.Context()))
	require.NoError(m.t, err)
	if known.Ended || time.Now().Before(known.Until) {
		m.meet("refreshed by another")
		m.release(claim)
		return false
	}
	if m.dies("before sending") {
		return true
	}
	ctx, cancel := context.WithTimeout(m.t.Context(), login.ClaimTime)
	defer cancel()
	next, err := m.refresh(ctx, known)
	if m.dies("after sending") {
		return true
	}
	if err == nil {
		err = m.save(claim, next)
	}
	if err != nil {
		m.meet("gave up")
	}
	if m.dies("after saving") {
		return true
	}
	m.release(claim)
	return false
}

// person logs in anew.
func (m *member) person() {
	claim := m.claim()
	if claim == nil {
		return
	}
	m.mu.Lock()
	m.current++
	m.ended, m.endKnown = false, false
	next := token{Refresh: m.current, Until: time.Now().Add(validFor)}
	m.mu.Unlock()
	if m.save(claim, next) != nil {
		m.meet("gave up")
	}
	m.release(claim)
}

func (m *member) kept(data []byte, err error) (known token, _ error) {
	if err == nil && data != nil {
		err = json.Unmarshal(data, &known)
	}
	return known, err
}

func (m *member) save(claim login.Claim, next token) error {
	data, err := json.Marshal(next)
	require.NoError(m.t, err)
	if err := claim.Save(m.t.Context(), data); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.endKnown, m.used = next.Ended, 0
	return nil
}

// refresh asks the authorization server, which answers after up to 4 seconds, and sometimes too late.
func (m *member) refresh(ctx context.Context, known token) (next token, err error) {
	took := between(m.Rand, 0, 2*time.Second)
	if m.IntN(20) == 0 {
		took = between(m.Rand, 10*time.Second, 25*time.Second)
	}
	if err := sleep(ctx, took); err != nil {
		return token{}, err
	}
	next = m.answer(known)
	return next, sleep(ctx, took)
}

// answer is that of the authorization server to a refresh token.
func (m *member) answer(known token) token {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uses[known.Refresh]++
	m.used = known.Refresh
	switch {
	case m.endKnown:
		m.violated("a refresh token was used although it was known that a person has to log in")
	case m.uses[known.Refresh] > m.lost[known.Refresh]+1:
		m.violated("refresh token %d was used twice, and whoever used it first lives", known.Refresh)
	}
	if m.ended || known.Refresh != m.current {
		m.ended = true
		m.met["refused"]++
		return token{Refresh: known.Refresh, Ended: true}
	}
	m.met["refreshed"]++
	m.current++
	return token{Refresh: m.current, Until: time.Now().Add(validFor)}
}

// claim returns a claim, or nil if the store has failed.
func (m *member) claim() login.Claim {
	m.mu.Lock()
	m.waiting[m] = time.Now()
	m.mu.Unlock()
	claim, err := m.logins.Claim(m.t.Context(), "a")
	m.mu.Lock()
	defer m.mu.Unlock()
	first := time.Now()
	for _, since := range m.waiting {
		first = earlier(first, since)
	}
	delete(m.waiting, m)
	if err != nil {
		require.True(m.t, m.store.failing, err)
		return nil
	}
	most := 4 * time.Second // 2 to look again, and the time that the store takes
	if m.died {
		most += 45 * time.Second
		m.met["taken over"]++
	}
	if from := later(first, m.free); time.Since(from) > most && !m.store.failing {
		m.violated("a claim was free for %v, and others waited", time.Since(from))
	}
	return claim
}

func (m *member) release(claim login.Claim) {
	m.ends(false)
	claim.Release()
}

// dies reports whether the member dies now.
func (m *member) dies(when string) bool {
	if m.IntN(12) != 0 {
		return false
	}
	m.meet("died " + when)
	m.ends(true)
	return true
}

// ends notes that the member does nothing more under its claim.
func (m *member) ends(died bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost[m.used]++
	m.used, m.free, m.died = 0, time.Now(), died
}

func (s *simulation) meet(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.met[what]++
}

func (s *simulation) violated(format string, args ...any) {
	s.t.Errorf("seed %d: %s", s.seed, fmt.Sprintf(format, args...))
}

// flaky is the store of all members. It takes some time, and may fail.
type flaky struct {
	mcpbridge.Swapper
	failing bool
	s       *simulation

	mu   sync.Mutex
	rand *rand.Rand
}

var errFlaky = errors.New("the store has failed")

// chance returns true in one of n cases, and takes a while.
func (f *flaky) chance(ctx context.Context, n int) bool {
	f.mu.Lock()
	took, is := between(f.rand, 0, 200*time.Millisecond), f.rand.IntN(n) == 0
	f.mu.Unlock()
	sleep(ctx, took)
	return is && f.failing
}

func (f *flaky) Load(ctx context.Context, key messages.Key) (*mcpbridge.Record, error) {
	if f.chance(ctx, 30) {
		return nil, errFlaky
	}
	return f.Swapper.Load(ctx, key)
}

func (f *flaky) Swap(ctx context.Context, key messages.Key, from uint64, record *mcpbridge.Record) (bool, error) {
	if f.chance(ctx, 10) {
		f.s.meet("swap failed")
		return false, errFlaky
	}
	swapped, err := f.Swapper.Swap(ctx, key, from, record)
	if f.chance(ctx, 10) {
		f.s.meet("swap failed and was saved")
		return false, errFlaky
	}
	return swapped, err
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)))
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
