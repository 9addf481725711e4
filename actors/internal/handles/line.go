package handles

import (
	"slices"
	"time"
)

const (
	// maxWaiting bounds the mints of one kind that wait for their turn.
	maxWaiting = 1 << 12
	// probeEvery is how often a mint is sent although there seem to be as many handles as there may be: others release as well.
	probeEvery = time.Second
)

// line is who waits for a handle of one kind. Holders take turns, and the mints of one holder are in order.
type line struct {
	declared int  // how many handles there may be, or 0
	most     int  // as declared, or as learned
	learned  bool // the server has taught it
	used     int  // places: of handles, and of mints under way or without an answer

	waiting int
	turns   []Holder // that wait
	mints   map[Holder][]*Mint
	probed  time.Time
}

// push adds a mint. first is for one that has had its turn already.
func (l *line) push(m *Mint, first bool) {
	if l.mints == nil {
		l.mints = map[Holder][]*Mint{}
	}
	at := func(n int) int {
		if first {
			return 0
		}
		return n
	}
	own := l.mints[m.Holder]
	if len(own) == 0 {
		l.turns = slices.Insert(l.turns, at(len(l.turns)), m.Holder)
	}
	l.mints[m.Holder] = slices.Insert(own, at(len(own)), m)
	l.waiting++
}

// next takes the mint whose turn it is out of the line, and gives it a place. It returns nil if there is no place, or nobody waits. Now and then
// one tries although there seems to be none: not beyond what is declared, of which certain returns how many there certainly are.
func (l *line) next(certain func() int, now time.Time) *Mint {
	switch {
	case l.waiting == 0:
		return nil
	case l.most == 0 || l.used < l.most:
	case now.Before(l.probed.Add(probeEvery)) || l.declared > 0 && certain() >= l.declared:
		return nil
	default:
		l.probed = now
	}
	holder := l.turns[0]
	l.turns = l.turns[1:]
	m := l.mints[holder][0]
	if l.mints[holder] = l.mints[holder][1:]; len(l.mints[holder]) > 0 {
		l.turns = append(l.turns, holder)
	} else {
		delete(l.mints, holder)
	}
	l.waiting--
	l.used++
	return m
}

// remove takes a mint out of the line, and reports whether it was there.
func (l *line) remove(m *Mint) bool {
	own := l.mints[m.Holder]
	i := slices.Index(own, m)
	if i < 0 {
		return false
	}
	if l.mints[m.Holder] = slices.Delete(own, i, i+1); len(l.mints[m.Holder]) == 0 {
		delete(l.mints, m.Holder)
		l.turns = slices.DeleteFunc(l.turns, func(h Holder) bool { return h == m.Holder })
	}
	l.waiting--
	return true
}

// isFull notes that the server has no room for more than there are.
func (l *line) isFull(certain int, now time.Time) {
	l.learned, l.probed = true, now
	l.learn(max(1, certain))
}

// hasRoomFor notes that a mint has succeeded: there may be more than was learned.
func (l *line) hasRoomFor() {
	if l.learned {
		l.learn(max(l.most, l.used))
	}
}

// learn notes how many handles there may be, which are not more than declared.
func (l *line) learn(n int) {
	if l.most = n; l.declared > 0 {
		l.most = min(n, l.declared)
	}
}
