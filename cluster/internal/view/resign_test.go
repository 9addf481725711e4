package view

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// reached is a keeper whose member is not reached by some others from a time on.
type reached struct {
	*Keeper
	id       string
	phase    time.Duration // when it asks first; then it does so four times in each lease
	late     time.Duration // until its request is done, and again until it has the answer
	cutFrom  []string
	cutAt    time.Duration
	heardAt  time.Duration // when it has heard them last
	resigned bool

	asked  *Request // under way
	number uint64
	doneAt time.Duration
	answer Answer
	hasAt  time.Duration // when it gets the answer, or 0
}

const testLease = 2 * time.Second

// pass does what is due at a time.
func (m *reached) pass(r *Register, now time.Duration) {
	if m.asked != nil && m.hasAt == 0 && now >= m.doneAt {
		m.answer, m.hasAt = r.Do(m.asked), now+m.late
	}
	if m.asked != nil && m.hasAt != 0 && now >= m.hasAt {
		v := m.Take(m.number, m.answer, now)
		m.asked, m.hasAt = nil, 0
		m.resigned = v.Resigns
		if v.AskAgain {
			m.ask(now)
		}
	}
	if now >= m.phase && (now-m.phase)%(testLease/4) == 0 {
		if now < m.cutAt {
			m.heardAt = now
		}
		var unheard []string
		if now-m.heardAt > testLease {
			unheard = m.cutFrom
		}
		m.Hears(unheard, now < m.cutAt)
		m.ask(now)
	}
}

func (m *reached) ask(now time.Duration) {
	if q, number := m.Ask(now); q != nil {
		m.asked, m.number, m.doneAt, m.hasAt = q, number, now+m.late, 0
	}
}

// One of three members is cut from both others, which reach each other: it is the one that goes, whoever notices first.
func TestMemberThatMostDoNotReachResigns(t *testing.T) {
	const step = 25 * time.Millisecond
	for phases := range 20 * 20 {
		for _, late := range []time.Duration{0, 2 * step, 8 * step} {
			b, c := time.Duration(phases%20)*step, time.Duration(phases/20)*step
			name := fmt.Sprintf("b asks %v after a, and its requests take %v; c asks %v after a", b, 2*late, c)
			r := new(Register)
			members := []*reached{
				{id: "a", cutFrom: []string{"b", "c"}, late: step},
				{id: "b", cutFrom: []string{"a"}, phase: b, late: late},
				{id: "c", cutFrom: []string{"a"}, phase: c, late: step},
			}
			for _, m := range members {
				m.Keeper, m.cutAt = NewKeeper(testLease), 10*time.Second
				m.Begin(Member{ID: m.id, Host: m.id, Name: m.id, Shards: 1})
			}
			var gone []string
			for now := time.Second; now < 20*time.Second && len(gone) == 0; now += step {
				for _, m := range members {
					m.pass(r, now)
					if m.resigned {
						gone = append(gone, m.id)
					}
				}
				if now == 9*time.Second {
					require.Len(t, r.View.Members, 3, name)
				}
			}
			slices.Sort(gone)
			require.Equal(t, []string{"a"}, gone, name)
		}
	}
}
