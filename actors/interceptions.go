package actors

import (
	"iter"

	"github.com/mcpactor/mcpactor/messages"
)

// interceptions are the operations that are with the interceptors. Taking one in or
// out, and finding those of an id, takes constant time for each.
type interceptions struct {
	all   map[*interception]struct{}
	of    map[messages.Key]int   // how many of each key
	first map[name]*interception // of each key and id
}

// name is what a caller calls an operation.
type name struct {
	key messages.Key
	id  string
}

func (i *interception) name() name { return name{i.key, i.op.RequestID()} }

func newInterceptions() interceptions {
	return interceptions{map[*interception]struct{}{}, map[messages.Key]int{}, map[name]*interception{}}
}

func (s *interceptions) has(i *interception) bool {
	_, ok := s.all[i]
	return ok
}

func (s *interceptions) add(i *interception) {
	s.all[i] = struct{}{}
	s.of[i.key]++
	n := i.name()
	if n.id == "" {
		return // it cannot be cancelled
	}
	if i.next = s.first[n]; i.next != nil {
		i.next.prev = i
	}
	s.first[n] = i
}

func (s *interceptions) remove(i *interception) {
	delete(s.all, i)
	if s.of[i.key]--; s.of[i.key] == 0 {
		delete(s.of, i.key)
	}
	if i.next != nil {
		i.next.prev = i.prev
	}
	switch n := i.name(); {
	case i.prev != nil:
		i.prev.next = i.next
	case i.next != nil:
		s.first[n] = i.next
	default:
		delete(s.first, n)
	}
	i.prev, i.next = nil, nil
}

// named yields the operations of a key and an id. The one that was yielded may be
// removed meanwhile.
func (s *interceptions) named(key messages.Key, id string) iter.Seq[*interception] {
	return func(yield func(*interception) bool) {
		for i := s.first[name{key, id}]; i != nil; {
			next := i.next
			if !yield(i) {
				return
			}
			i = next
		}
	}
}
