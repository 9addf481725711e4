package admission

import "time"

// youth is how long a process counts as young after it has started.
const youth = 200 * time.Millisecond

// The permits are shared in parts.
const (
	youngParts = 3 // one part of all permits is for young starts, so that a server that is called meanwhile has its turn
	downParts  = 2 // one part of all permits is for the servers that are down
	newParts   = 4 // one part of what the other servers leave is for a server that has not answered, or is down
	knownParts = 2 // one part of what the other servers leave is for a server that has answered
)

// starts are the processes that start: each has a permit until it answers, or its dial ends. Whether such a process uses
// processor time, sleeps or hangs is not known. So there are enough permits for many that sleep, and few enough that
// each process which uses processor time gets its share. A few servers that hang leave permits to the others. Many that
// have never answered may use all, until their dials time out. Then they are down.
type starts struct {
	limit  int
	count  int
	young  int
	down   int      // of servers that were down
	recent []*start // in their order, the first one young
}

// serverStarts are those of one server.
type serverStarts struct {
	all   *starts
	home  *Outage // of the server
	count int
}

// start is a process that starts.
type start struct {
	of    *serverStarts
	at    time.Time
	young bool
	down  bool // its server was down
}

// free returns how many more processes may start. It is negative if more have started than may: a dial that takes over
// a connection needs no permit.
func (st *starts) free() int { return min(st.limit-st.count, share(st.limit, youngParts)-st.young) }

// room returns how many more processes of the server may start.
func (of *serverStarts) room() int {
	st, parts := of.all, newParts
	if !of.home.Down && !of.home.SeenAt.IsZero() {
		parts = knownParts
	}
	n := min(st.free(), share(st.limit-(st.count-of.count), parts)-of.count)
	if of.home.Down {
		n = min(n, share(st.limit, downParts)-st.down)
	}
	return max(0, n)
}

// share returns one of some equal parts of permits, rounded up.
func share(permits, parts int) int { return (permits + parts - 1) / parts }

// begin notes that a process of the server starts.
func (of *serverStarts) begin(now time.Time) *start {
	s := &start{of: of, at: now, young: true, down: of.home.Down}
	of.all.recent = append(of.all.recent, s)
	of.all.young++
	of.all.add(s, 1)
	return s
}

// end notes that the process has answered, or that its dial has ended.
func (s *start) end() {
	s.of.all.age(s)
	s.of.all.add(s, -1)
}

// add counts a start, or subtracts it.
func (st *starts) add(s *start, n int) {
	st.count += n
	s.of.count += n
	if s.down {
		st.down += n
	}
}

// age ends the youth of a start.
func (st *starts) age(s *start) {
	if s.young {
		s.young = false
		st.young--
	}
	for len(st.recent) > 0 && !st.recent[0].young {
		st.recent = st.recent[1:]
	}
}

// next returns when the oldest young start ceases to be young, or the zero time.
func (st *starts) next() time.Time {
	if len(st.recent) == 0 {
		return time.Time{}
	}
	return st.recent[0].at.Add(youth)
}

// pass lets time pass. It reports whether a start has ceased to be young.
func (st *starts) pass(now time.Time) (aged bool) {
	for len(st.recent) > 0 && !st.next().After(now) {
		st.age(st.recent[0])
		aged = true
	}
	return aged
}
