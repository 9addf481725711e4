package handles

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// Book has the handles of a registry.
type Book struct {
	servers map[string]*server
	ends    []*End                // that are not over
	records map[messages.Key]bool // of the store, that are known
	decided []Decision
	turn    int       // how many mints were granted
	next    time.Time // when Due is called, or zero
	graced  time.Time // when orphans are released
}

// Decision is what is to be done: one of Grant, Refuse, Release, List, Forget, Pin, Over and Said.
type Decision struct {
	Grant   *Mint        // it may be sent
	Refuse  *Mint        // it is not sent, because its holder has ended
	Release *Handle      // by Until, if that is set
	Until   time.Time    //
	List    *Kind        // over the session of By
	By      messages.Key //
	Forget  messages.Key // the record in the store
	Pin     messages.Key // or unpin: handles are bound to its session, or not, see [Book.IsBound]
	Over    *End
	Said    *Said
}

// Said is what is published. The handle itself is not.
type Said struct {
	What   What
	Key    messages.Key
	Mint   string
	Reason string
}

// What has become of a handle.
type What int

// What is said.
const (
	IsMinted What = iota
	IsReleased
	IsGone
	IsLost
	IsLeft
)

// server is what is known of one server.
type server struct {
	kinds     Kinds
	of        map[string]*kind // by the tool that mints; also those that are no longer declared, while there are handles
	releasing int
	queue     []*Handle // to be released
}

// kind is the handles of one kind.
type kind struct {
	*Kind
	line   line
	all    map[string]*Handle  // by [Kind.fullID]
	stale  map[string][]Holder // who has held a handle that is no more, and may not know that: they do not mean one that is minted with its id
	mints  map[*Mint]bool      // granted, and without an answer
	look   *look               // for what lost mints have minted
	lookAt time.Time           // when there is another one, or zero
	found  int                 // how many mints were granted when a lost one was found last
}

// look is how it is found out what the mints of a kind have minted whose answers were lost: the handles that there are, and that nobody has minted or
// released in the sight of the book.
type look struct {
	at    time.Time       // when the list was asked for
	lost  []*Mint         // at that time
	sent  []*Mint         // that were under way when it came: they may have minted what is listed
	ended map[string]bool // that have ended since, and may be listed
	ids   []string        // that are listed
	known bool            // what is listed
	broke bool            // a connection was lost since: what is listed may be another one's
}

// New returns a book without handles.
func New() *Book { return &Book{servers: map[string]*server{}, records: map[messages.Key]bool{}} }

// Declare notes which kinds a server declares from now on. Handles of other kinds that it has are no longer known.
func (b *Book) Declare(name string, kinds Kinds) {
	srv := b.servers[name]
	if srv == nil {
		if len(kinds) == 0 {
			return
		}
		srv = &server{of: map[string]*kind{}}
		b.servers[name] = srv
	}
	srv.kinds = kinds
	for _, k := range kinds {
		of := srv.of[k.Mint]
		if of == nil {
			of = &kind{all: map[string]*Handle{}, stale: map[string][]Holder{}, mints: map[*Mint]bool{}}
			srv.of[k.Mint] = of
		}
		of.Kind = k
		if of.line.declared != k.Max || !of.line.learned {
			of.line.declared, of.line.most, of.line.learned = k.Max, k.Max, false
		}
	}
}

// Kinds returns the kinds that a server declares.
func (b *Book) Kinds(server string) Kinds {
	if srv := b.servers[server]; srv != nil {
		return srv.kinds
	}
	return nil
}

// Decided returns what is to be done, in order.
func (b *Book) Decided() []Decision {
	decided := b.decided
	b.decided = nil
	return decided
}

// Next returns when [Book.Due] is to be called, or zero.
func (b *Book) Next() time.Time { return b.next }

// at has Due called at a time, or earlier.
func (b *Book) at(t time.Time) {
	if !t.IsZero() && (b.next.IsZero() || t.Before(b.next)) {
		b.next = t
	}
}

func (b *Book) decide(d Decision) { b.decided = append(b.decided, d) }

// say says what has become of a handle.
func (b *Book) say(what What, key messages.Key, mint, reason string) {
	b.decide(Decision{Said: &Said{what, key, mint, reason}})
}

// kindOf returns the handles of a server that a tool mints, or nil.
func (b *Book) kindOf(server, mint string) *kind {
	if srv := b.servers[server]; srv != nil {
		return srv.of[mint]
	}
	return nil
}

// kinds returns all kinds.
func (b *Book) kinds() iter.Seq[*kind] {
	return func(yield func(*kind) bool) {
		for _, srv := range b.servers {
			for _, k := range srv.of {
				if !yield(k) {
					return
				}
			}
		}
	}
}

// sorted returns the handles of a kind that match, the oldest first.
func (k *kind) sorted(matches func(*Handle) bool) (all []*Handle) {
	for _, h := range k.all {
		if matches(h) {
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(x, y *Handle) int { return cmp.Or(x.Minted.Compare(y.Minted), cmp.Compare(x.ID, y.ID)) })
	return all
}

// HasRecord reports whether the book has what a record is about, or is about to forget it.
func (b *Book) HasRecord(at messages.Key) bool { return b.records[at] }

// Forgotten notes that a record was deleted.
func (b *Book) Forgotten(at messages.Key) { delete(b.records, at) }

// IsBound reports whether handles are bound to the session of a key.
func (b *Book) IsBound(key messages.Key) bool {
	srv := b.servers[key.Server]
	for _, k := range srv.of {
		for _, h := range k.all {
			if k.Bound && h.By == key {
				return true
			}
		}
	}
	return false
}

// certain returns how many handles there certainly are, or are being minted.
func (k *kind) certain() (n int) {
	for _, h := range k.all {
		if h.state != left {
			n++
		}
	}
	return n + len(k.mints) - len(k.lost())
}

// lost returns the mints whose answers are lost, the oldest first.
func (k *kind) lost() (all []*Mint) {
	for m := range k.mints {
		if m.state == lost {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(x, y *Mint) int { return cmp.Or(x.Since.Compare(y.Since), x.Record.Compare(y.Record)) })
	return all
}

// grant gives places in the line to those whose turn it is.
func (b *Book) grant(k *kind, now time.Time) {
	for {
		m := k.line.next(k.certain, now)
		if m == nil {
			break
		}
		b.turn++
		m.state, m.Since, m.turn, m.suspect = underWay, now, b.turn, false
		k.mints[m] = true
		b.decide(Decision{Grant: m})
	}
	if k.line.waiting > 0 {
		b.at(now.Add(probeEvery))
	}
}

// idles has Due called when a handle may have been idle for too long.
func (b *Book) idles(h *Handle) {
	if h.Kind.Idle > 0 && h.busy == 0 {
		b.at(h.Used.Add(h.Kind.Idle))
	}
}

// Waiting returns the mints that wait for their turn.
func (b *Book) Waiting() iter.Seq[*Mint] {
	return func(yield func(*Mint) bool) {
		for k := range b.kinds() {
			for _, all := range k.line.mints {
				for _, m := range all {
					if !yield(m) {
						return
					}
				}
			}
		}
	}
}

// endIfOver ends the end of holders if it waits for nothing.
func (b *Book) endIfOver(e *End) {
	if i := slices.Index(b.ends, e); i >= 0 && e.isOver() {
		b.ends = slices.Delete(b.ends, i, i+1)
		b.decide(Decision{Over: e})
	}
}
