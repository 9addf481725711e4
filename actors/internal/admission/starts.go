package admission

import "time"

// youth is how long the start of a process is young.
const youth = 200 * time.Millisecond

// Into how many parts permits are shared.
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

// start is a process that starts.
type start struct {
	server *Server
	at     time.Time
	young  bool
	down   bool
}

// free returns how many more processes may start. It is negative if more have started than may: a dial that takes over
// a connection needs no permit.
func (st *starts) free() int { return min(st.limit-st.count, share(st.limit, youngParts)-st.young) }

// room returns how many more processes of a server may start.
func (st *starts) room(srv *Server) int {
	left, parts, ep := st.limit-(st.count-srv.starts), newParts, srv.Home.Endpoint
	if !ep.Down && !ep.SeenAt.IsZero() {
		parts = knownParts
	}
	n := min(st.free(), share(left, parts)-srv.starts)
	if ep.Down {
		n = min(n, share(st.limit, downParts)-st.down)
	}
	return max(0, n)
}

// share returns one of some equal parts of permits, rounded up.
func share(permits, parts int) int { return (permits + parts - 1) / parts }

// begin notes that a process starts.
func (st *starts) begin(srv *Server, now time.Time) *start {
	s := &start{server: srv, at: now, young: true, down: srv.Home.Endpoint.Down}
	st.recent = append(st.recent, s)
	st.young++
	st.add(s, 1)
	return s
}

// end notes that a process has answered, or that its dial has ended.
func (st *starts) end(s *start) {
	st.age(s)
	st.add(s, -1)
}

// add counts a start, or subtracts it.
func (st *starts) add(s *start, n int) {
	st.count += n
	s.server.starts += n
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
