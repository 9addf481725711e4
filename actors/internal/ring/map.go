package ring

// Map has rings by key. It keeps none that is empty.
type Map[K comparable, T any] map[K]*Ring[T]

// Of returns the ring of a key, which may not be changed.
func (m Map[K, T]) Of(k K) *Ring[T] {
	if r := m[k]; r != nil {
		return r
	}
	return &Ring[T]{}
}

// Push adds a value at the end of the ring of a key.
func (m Map[K, T]) Push(k K, n *Node[T], value T) {
	m[k] = m.Of(k)
	m[k].Push(n, value)
}

// PushFront adds a value at the front of the ring of a key.
func (m Map[K, T]) PushFront(k K, n *Node[T], value T) {
	m[k] = m.Of(k)
	m[k].PushFront(n, value)
}

// Remove removes a value, if it is in the ring of the key.
func (m Map[K, T]) Remove(k K, n *Node[T]) {
	r := m.Of(k)
	if r.Remove(n); r.Count == 0 {
		delete(m, k)
	}
}
