package admission

import "time"

// youth is how long the start of a process is young.
const youth = 200 * time.Millisecond

// starts are the processes that start: each has a permit until it answers, or its dial ends. Whether such a process uses
// processor time, sleeps or hangs is not known. So there are enough permits for many that sleep, and few enough that
// each process which uses processor time gets its share. And:
//
//   - At most a third of the permits is for young starts. The others are given one after the other, so that a server
//     that is called meanwhile has its turn.
//   - One server has at most a quarter of the permits that other servers leave, and half once it has answered: if it
//     hangs, it delays no other.
//   - Servers that are down have at most half of the permits: if they hang, they delay no server that is up.
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
func (st *starts) free() int { return min(st.limit-st.count, share(st.limit, 3)-st.young) }

// room returns how many more processes of a server may start.
func (st *starts) room(srv *Server) int {
	n, left, ep := st.free(), st.limit-(st.count-srv.starts), srv.Home.Endpoint
	switch {
	case ep.Down:
		n = min(n, share(left, 4)-srv.starts, share(st.limit, 2)-st.down)
	case ep.SeenAt.IsZero():
		n = min(n, share(left, 4)-srv.starts)
	default:
		n = min(n, share(left, 2)-srv.starts)
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
