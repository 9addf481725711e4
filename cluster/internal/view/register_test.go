package view

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const lease = time.Second

// cluster is keepers that ask one register, whose answers come at once, by one clock.
type cluster struct {
	t        *testing.T
	register Register
	keepers  map[string]*Keeper
	now      time.Duration
}

func newCluster(t *testing.T, ids ...string) *cluster {
	c := &cluster{t: t, keepers: map[string]*Keeper{}, now: time.Hour}
	for _, id := range ids {
		k := NewKeeper(lease)
		k.Begin(member(id))
		k.Hears(nil, true)
		c.keepers[id] = k
	}
	for range 3 {
		for _, id := range ids {
			c.ask(id)
		}
	}
	for _, id := range ids {
		require.Contains(t, c.members(), id)
	}
	return c
}

func member(id string) Member { return Member{ID: id, Host: id + ":1"} }

// ask has a member ask, if a request is due, and again as long as it wants to.
func (c *cluster) ask(id string) Verdict {
	q, number := c.keepers[id].Ask(c.now)
	if q == nil {
		return Verdict{}
	}
	v := c.keepers[id].Take(number, c.register.Do(q), c.now)
	if v.AskAgain && !v.Removed {
		return c.ask(id)
	}
	return v
}

// pass has time pass, in which some members ask.
func (c *cluster) pass(d time.Duration, ids ...string) {
	for end := c.now + d; c.now < end; {
		c.now += 10 * time.Millisecond
		for _, id := range ids {
			c.ask(id)
		}
	}
}

// members are those of the view.
func (c *cluster) members() (ids []string) {
	for _, m := range c.register.View.Members {
		ids = append(ids, m.ID)
	}
	return ids
}

func TestOneOfTwoChangesOfAViewIsMade(t *testing.T) {
	var r Register
	for _, id := range []string{"a", "b"} {
		r.Do(&Request{From: member(id), Beat: true, First: true})
	}
	empty := r.View
	require.Len(t, r.Do(&Request{From: member("a"), Next: empty.with(member("a"))}).View.Members, 1)
	answer := r.Do(&Request{From: member("b"), Next: empty.with(member("b"))})
	require.Equal(t, *empty.with(member("a")), answer.View)
	require.Contains(t, answer.Beats, "b", "the rest of the request was done")
}

func TestMemberThatHasRenewedIsNotRemoved(t *testing.T) {
	var r Register
	seen := r.Do(&Request{From: member("b"), Beat: true, First: true, Next: r.View.with(member("b"))}).Beats["b"]
	removal := &Request{From: member("a"), Next: r.View.without("b"), Silent: &seen}
	r.Do(&Request{From: member("b"), Beat: true})
	require.Len(t, r.Do(removal).View.Members, 1)
	seen = r.Beats["b"]
	answer := r.Do(removal)
	require.Empty(t, answer.View.Members)
	require.NotContains(t, r.Do(&Request{From: member("b"), Beat: true}).Beats, "b", "one that was removed does not come back")
}

func TestLeaseRunsFromWhenTheRenewalWasSent(t *testing.T) {
	c := newCluster(t, "a")
	q, number := c.keepers["a"].Ask(c.now)
	sent := c.now
	answer := c.register.Do(q)
	c.now += lease / 4
	v := c.keepers["a"].Take(number, answer, c.now)
	require.True(t, v.Renewed)
	require.Equal(t, sent, v.From)
}

func TestLateAnswerCountsForNothing(t *testing.T) {
	c := newCluster(t, "a")
	q, number := c.keepers["a"].Ask(c.now)
	answer := c.register.Do(q)
	c.now += lease
	again, _ := c.keepers["a"].Ask(c.now)
	require.False(t, again.Beat, "it asks for an answer before it renews what others would see")
	require.Equal(t, Verdict{}, c.keepers["a"].Take(number, answer, c.now))
}

// Whenever the last renewal of a member is answered, the others remove it a lease and two percent later at the earliest.
func TestSilentMemberIsRemovedWhenItsLeaseHasRunOut(t *testing.T) {
	for offset := range 25 {
		c := newCluster(t, "a", "b", "c")
		c.pass(time.Duration(offset)*7*time.Millisecond, "a", "b", "c")
		last := c.now
		require.True(t, c.ask("b").Renewed)
		c.pass(lease*102/100-10*time.Millisecond, "a", "c")
		require.Contains(t, c.members(), "b")
		c.pass(30*time.Millisecond, "a", "c")
		require.NotContains(t, c.members(), "b", "%v after its renewal", c.now-last)
		c.keepers["b"].Hears(nil, true)
		require.True(t, c.ask("b").Removed)
	}
}

// Several members ended at once, and one wants to join.
func TestChangesThatAreDueAreMadeAtOnce(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	d := NewKeeper(lease)
	d.Begin(member("d"))
	c.keepers["d"] = d
	c.pass(lease*102/100-10*time.Millisecond, "a", "d") // which does not reach the two
	require.Equal(t, []string{"a", "b", "c"}, c.members())
	c.now += 20 * time.Millisecond
	c.ask("a")
	require.Equal(t, []string{"a"}, c.members())
	d.Hears(nil, true)
	c.ask("d")
	require.Equal(t, []string{"a", "d"}, c.members())
}

// The clocks of two members may run at rates that differ by less than two percent.
func TestMemberWithASlowClockIsNotRemovedInItsLease(t *testing.T) {
	for _, rates := range [][2]float64{{1, 1}, {1, 0.981}, {1.019, 1}, {1.009, 0.99}, {0.981, 1}} {
		c := newCluster(t, "a", "b")
		b, began := c.keepers["b"], c.now
		var renewed, now time.Duration // by the clock of b
		for real := time.Duration(0); slices.Contains(c.members(), "b"); real += time.Millisecond {
			c.now, now = began+time.Duration(float64(real)*rates[0]), began+time.Duration(float64(real)*rates[1])
			c.ask("a")
			if real < lease {
				q, number := b.Ask(now)
				require.True(t, b.Take(number, c.register.Do(q), now).Renewed)
				renewed = now
			}
		}
		require.GreaterOrEqual(t, now-renewed, lease, "the rates %v", rates)
	}
}

// While the lease of a cluster is changed, a member waits for the end of the lease that a silent one has.
func TestMemberWithALongLeaseIsNotRemovedInIt(t *testing.T) {
	c := newCluster(t, "a", "c")
	b := NewKeeper(4 * lease)
	c.keepers["b"] = b
	b.Begin(member("b"))
	b.Hears(nil, true)
	for range 3 {
		c.ask("b")
	}
	for range 8 { // b renews its lease as seldom as it has to
		c.pass(lease, "a", "c")
		require.True(t, c.ask("b").Renewed)
	}
	c.pass(4*lease*102/100-10*time.Millisecond, "a", "c")
	require.Contains(t, c.members(), "b")
	c.pass(30*time.Millisecond, "a", "c")
	require.NotContains(t, c.members(), "b")
}

// Who got no answers does not know since when others are silent: they may not have got any either.
func TestNobodyIsRemovedWhenTheWitnessIsBack(t *testing.T) {
	c := newCluster(t, "a", "b")
	c.ask("a")
	c.keepers["a"].Ask(c.now) // there is no answer
	c.now += 3 * lease
	c.pass(lease/2, "a")
	require.Contains(t, c.members(), "b")
	c.pass(lease, "a")
	require.NotContains(t, c.members(), "b")
}

func TestMemberThatLeavesOwnsNothingAndThenGoes(t *testing.T) {
	c := newCluster(t, "a", "b")
	c.keepers["a"].Leave()
	c.ask("a")
	self, _ := c.register.View.Member("a")
	require.True(t, self.Leaving)
	for shard := range 100 {
		owner, found := c.register.View.Owners().Of(shard)
		require.True(t, found)
		require.Equal(t, "b", owner.ID)
	}
	c.keepers["a"].Depart(true)
	require.True(t, c.ask("a").Removed)
	require.Equal(t, []string{"b"}, c.members())
}

// All want to change the view at the same time: who was too late asks again at once.
func TestChangeThatCameTooLateIsAskedForAgain(t *testing.T) {
	c := newCluster(t, "a", "b")
	c.pass(20*time.Millisecond, "a", "b") // both know the view
	var requests []*Request
	var numbers []uint64
	for _, id := range []string{"a", "b"} {
		c.keepers[id].Leave()
		q, number := c.keepers[id].Ask(c.now)
		requests, numbers = append(requests, q), append(numbers, number)
	}
	c.keepers["a"].Take(numbers[0], c.register.Do(requests[0]), c.now)
	require.True(t, c.keepers["b"].Take(numbers[1], c.register.Do(requests[1]), c.now).AskAgain)
	c.ask("b")
	require.True(t, c.register.View.Owners().None())
}

func TestIncarnationThatHasEndedIsRemovedAtOnce(t *testing.T) {
	c := newCluster(t, "a", "b")
	c.keepers["a"].End()
	c.keepers["a"].Cede("a")
	c.ask("a")
	require.Equal(t, []string{"b"}, c.members())
}

func TestMemberJoinsAnewWhenTheWitnessHasLostViews(t *testing.T) {
	for name, lose := range map[string]func(v *View) bool{
		"all":                   func(v *View) bool { *v = View{}; return true },
		"the last one":          func(v *View) bool { v.Number--; return true },
		"another one came":      func(v *View) bool { *v = viewOf(v.Number, "a", "c"); return true },
		"only the last renewal": func(*View) bool { return false },
	} {
		c := newCluster(t, "a", "b")
		c.ask("a")
		lost := lose(&c.register.View)
		c.register.Revision = 0
		v := c.ask("a")
		require.Equal(t, [3]bool{lost, lost, !lost}, [3]bool{v.Lost, v.Removed, v.Renewed}, name)
	}
}

// Also a later view is one of other views than the last ones, if a former member is there again. Not all former members are known.
func TestMemberJoinsAnewWhenAFormerMemberIsThere(t *testing.T) {
	c := newCluster(t, "a")
	for i := range 2 * maxFormer {
		c.register.View = *c.register.View.with(member(fmt.Sprint("b", i)))
		c.ask("a")
		c.register.View = *c.register.View.without(fmt.Sprint("b", i))
		require.False(t, c.ask("a").Removed)
	}
	require.Len(t, c.keepers["a"].former, maxFormer)
	last := member(fmt.Sprint("b", 2*maxFormer-1))
	c.register.Do(&Request{From: last, Beat: true, First: true, Next: c.register.View.with(last)})
	v := c.ask("a")
	require.True(t, v.Lost && v.Removed)
}
