package link

import (
	"bytes"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// channel is a transport in one direction, with faults.
type channel struct {
	rand             *rand.Rand
	lose, repeat     float64
	delay, variation time.Duration
	frames           flight
	first            map[uint64]uint64 // the frame with the first part of a message, by its id
}

func (c *channel) send(now time.Time, f *Frame) {
	if c.first[f.ID] == 0 {
		c.first[f.ID] = f.Seq
	}
	copies := 1
	if c.rand.Float64() < c.repeat {
		copies = 2
	}
	for range copies {
		if c.rand.Float64() < c.lose {
			continue
		}
		at := now.Add(c.delay)
		if c.variation > 0 {
			at = at.Add(time.Duration(c.rand.Int64N(int64(c.variation))))
		}
		heap.Push(&c.frames, arrival{at, len(c.frames), f})
	}
}

type arrival struct {
	at    time.Time
	order int
	frame *Frame
}

type flight []arrival

func (f flight) Len() int { return len(f) }
func (f flight) Less(i, j int) bool {
	if f[i].at.Equal(f[j].at) {
		return f[i].frame.Seq < f[j].frame.Seq
	}
	return f[i].at.Before(f[j].at)
}
func (f flight) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *flight) Push(x any)   { *f = append(*f, x.(arrival)) }
func (f *flight) Pop() any {
	old := *f
	last := old[len(old)-1]
	*f = old[:len(old)-1]
	return last
}

// pair is two links, with a clock of their own.
type pair struct {
	t    *testing.T
	now  time.Time
	link [2]Link
	to   [2]channel // to[i] leads to link i
	next [2]time.Time
	got  [2][]Message
	at   [2][]time.Time
}

func newPair(t *testing.T, seed uint64, faults channel) *pair {
	p := &pair{t: t, now: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
	for i := range p.to {
		p.to[i] = faults
		p.to[i].first = map[uint64]uint64{}
		p.to[i].rand = rand.New(rand.NewPCG(seed, uint64(i)))
	}
	return p
}

// tick does what a node does after each event of a link.
func (p *pair) tick(i int) {
	p.next[i] = p.link[i].Tick(p.now, func(f *Frame) { p.to[1-i].send(p.now, f) })
	l := &p.link[i]
	require.LessOrEqual(p.t, l.flying, window+PartSize+frameCost)
	require.LessOrEqual(p.t, len(l.unacked), windowFrames)
	require.LessOrEqual(p.t, l.partialSize, maxPartial)
	require.False(p.t, p.next[i].IsZero() && !l.Idle(), "a link that has something to do wants no tick")
	require.False(p.t, !p.next[i].IsZero() && !p.next[i].After(p.now), "a tick left something undone that was due")
}

func (p *pair) queue(i int, m Message) *Sent {
	p.t.Helper()
	sent, err := p.link[i].Queue(m, true)
	require.NoError(p.t, err)
	return sent
}

// step goes to the next event, and reports whether there was one.
func (p *pair) step() bool {
	var first time.Time
	earlier := func(at time.Time) {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	for i := range 2 {
		earlier(p.next[i])
		if len(p.to[i].frames) > 0 {
			earlier(p.to[i].frames[0].at)
		}
	}
	if first.IsZero() {
		return false
	}
	p.now = first
	for i := range 2 {
		for len(p.to[i].frames) > 0 && !p.to[i].frames[0].at.After(p.now) {
			f := heap.Pop(&p.to[i].frames).(arrival).frame
			p.link[i].Receive(p.now, f, func(m Message) {
				p.got[i], p.at[i] = append(p.got[i], m), append(p.at[i], p.now)
			})
			p.tick(i)
		}
		if !p.next[i].IsZero() && !p.next[i].After(p.now) {
			p.tick(i)
		}
	}
	return true
}

// run steps until nothing is left to do.
func (p *pair) run() {
	p.t.Helper()
	p.tick(0)
	p.tick(1)
	for steps := 0; p.step(); steps++ {
		require.Less(p.t, steps, 1_000_000, "the links do not come to rest")
	}
	for i := range p.link {
		l := &p.link[i]
		require.True(p.t, l.Idle())
		require.Zero(p.t, l.queued)
		require.Zero(p.t, l.begun)
		require.Zero(p.t, l.flying)
		require.Zero(p.t, l.partialSize)
		require.Zero(p.t, l.aheadSize)
		require.Empty(p.t, l.ahead)
		require.Empty(p.t, l.partial)
		require.Zero(p.t, l.owed)
	}
}

// body returns bytes that differ between messages and between their parts.
func body(size int, seed uint64) []byte {
	pattern := make([]byte, 1013)
	rand.NewChaCha8([32]byte{byte(seed)}).Read(pattern)
	return bytes.Repeat(pattern, size/len(pattern)+1)[:size]
}

func TestMessagesArriveOnceAndSmallOnesInOrder(t *testing.T) {
	for name, faults := range map[string]channel{
		"perfect":    {delay: time.Millisecond},
		"instant":    {},
		"loss":       {lose: 0.2, delay: time.Millisecond},
		"duplicates": {repeat: 0.5, delay: time.Millisecond},
		"reordered":  {delay: time.Millisecond, variation: 5 * time.Millisecond},
		"slow":       {delay: 700 * time.Millisecond, variation: time.Second}, // more than the first retry
		"everything": {lose: 0.1, repeat: 0.2, delay: time.Millisecond, variation: 2 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				checkDelivery(t, seed, faults)
			}
		})
	}
}

// checkDelivery sends random messages in both directions.
func checkDelivery(t *testing.T, seed uint64, faults channel) {
	p := newPair(t, seed, faults)
	r := rand.New(rand.NewPCG(seed, 7))
	var sent [2][]Message
	var tokens []*Sent
	for i := range uint64(60) {
		side := r.IntN(2)
		size := []int{0, 1, 100, PartSize, PartSize + 1, 3 * PartSize, 5*PartSize + 17}[r.IntN(7)]
		m := Message{Type: fmt.Sprint("type", i), ID: i, Body: body(size, i)}
		tokens = append(tokens, p.queue(side, m))
		sent[side] = append(sent[side], m)
		p.tick(side)
		for range r.IntN(4) {
			p.step()
		}
	}
	p.run()
	for _, s := range tokens {
		require.True(t, s.MayHaveArrived())
	}
	for side := range 2 {
		var small []uint64
		got := map[uint64]Message{}
		for _, m := range p.got[1-side] {
			require.NotContains(t, got, m.ID, "seed %d: it arrived twice", seed)
			got[m.ID] = m
			if len(m.Body) <= PartSize {
				small = append(small, m.ID)
			}
		}
		require.Len(t, got, len(sent[side]), "seed %d", seed)
		for _, m := range sent[side] {
			require.Equal(t, m.Type, got[m.ID].Type)
			require.True(t, bytes.Equal(m.Body, got[m.ID].Body))
			if len(m.Body) <= PartSize {
				require.Equal(t, m.ID, small[0], "seed %d: small messages change places", seed)
				small = small[1:]
			}
		}
	}
}

func TestLargeMessageDoesNotDelaySmallOnes(t *testing.T) {
	p := newPair(t, 1, channel{delay: time.Millisecond})
	p.queue(0, Message{ID: 1, Body: body(10<<20, 1)})
	p.tick(0)
	for range 3 {
		p.step()
	}
	for id := uint64(2); id < 7; id++ {
		before := p.link[0].seq
		p.queue(0, Message{ID: id, Body: []byte("small")})
		p.tick(0)
		for len(p.got[1]) < int(id-1) {
			require.True(t, p.step())
		}
		require.Equal(t, id, p.got[1][id-2].ID)
		require.LessOrEqual(t, p.to[1].first[id]-before, uint64(2), "too many parts went first")
	}
	p.run()
	require.Len(t, p.got[1][5].Body, 10<<20)
}

func TestTwoLargeMessagesTakeTurns(t *testing.T) {
	p := newPair(t, 1, channel{delay: time.Millisecond})
	p.queue(0, Message{ID: 1, Body: body(10<<20, 1)})
	p.queue(0, Message{ID: 2, Body: body(1<<20, 1)})
	p.run()
	require.Equal(t, uint64(2), p.got[1][0].ID)
}

func TestUnfinishedMessagesAreBounded(t *testing.T) {
	p := newPair(t, 1, channel{})
	for id := uint64(1); id <= 4; id++ {
		p.queue(0, Message{ID: id, Body: body(MaxMessage/2-1, id)})
	}
	most := 0
	p.tick(0)
	for p.step() {
		most = max(most, p.link[1].partialSize)
	}
	require.Len(t, p.got[1], 4)
	require.LessOrEqual(t, most, MaxMessage+MaxMessage/PartSize*frameCost)
}

func TestMessageWithoutItsLastPartHasNotArrived(t *testing.T) {
	var l Link
	whole, err := l.Queue(Message{ID: 1, Body: body(window/2, 1)}, false)
	require.NoError(t, err)
	large, err := l.Queue(Message{ID: 2, Body: body(4*window, 1)}, false)
	require.NoError(t, err)
	behind, err := l.Queue(Message{ID: 3, Body: body(window, 1)}, false)
	require.NoError(t, err)
	require.False(t, whole.MayHaveArrived())
	l.flush(time.Now(), func(*Frame) {})
	last, err := l.Queue(Message{ID: 4}, false)
	require.NoError(t, err)
	for range 10 { // the window is full
		l.Tick(time.Now(), func(*Frame) {})
	}
	require.False(t, large.MayHaveArrived())
	require.False(t, behind.MayHaveArrived())
	require.False(t, last.MayHaveArrived())
	require.False(t, l.Idle())
}

func TestQueueIsBounded(t *testing.T) {
	var l Link
	_, err := l.Queue(Message{Body: make([]byte, MaxMessage+1)}, true)
	require.ErrorIs(t, err, ErrLarge)
	require.False(t, l.Crowded())
	_, err = l.Queue(Message{Body: make([]byte, MaxMessage)}, false)
	require.NoError(t, err)
	require.True(t, l.Crowded())
	_, err = l.Queue(Message{}, false)
	require.ErrorIs(t, err, ErrFull)
	_, err = l.Queue(Message{}, true)
	require.NoError(t, err)
}

func TestTickSaysWhenItIsNeeded(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	var l Link
	frames := 0
	send := func(*Frame) { frames++ }
	require.Zero(t, l.Tick(now, send))
	_, err := l.Queue(Message{}, false)
	require.NoError(t, err)
	pause := firstRetry
	next := l.Tick(now, send)
	for i := 1; i < 8; i++ {
		require.Equal(t, i, frames)
		require.Equal(t, now.Add(pause), next)
		require.Equal(t, next, l.Tick(next.Add(-1), send), "it is not due")
		require.Equal(t, i, frames)
		now, pause = next, min(2*pause, lastRetry)
		next = l.Tick(now, send)
	}
	l.Receive(now, &Frame{Ack: 1}, nil)
	require.Zero(t, l.Tick(now, send))

	l.Receive(now, &Frame{Seq: 1, Message: 1, Last: true}, func(Message) {})
	require.Equal(t, now.Add(ackDelay), l.Tick(now, send), "the acknowledgement is owed")
	frames = 0
	require.Zero(t, l.Tick(now.Add(ackDelay), send))
	require.Equal(t, 1, frames)
}

func TestFramesThatComeTooEarlyAreKept(t *testing.T) {
	p := newPair(t, 1, channel{delay: time.Millisecond})
	for id := range uint64(10) {
		p.queue(0, Message{ID: id, Body: body(PartSize, id)})
	}
	p.tick(0)
	heap.Pop(&p.to[1].frames) // it is lost
	for p.step() {
	}
	require.Len(t, p.got[1], 10)
	require.Less(t, p.now.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), 2*firstRetry)
}

func TestExpects(t *testing.T) {
	var l Link
	deliver := func(Message) {}
	l.Receive(time.Now(), &Frame{Seq: 1, Message: 1, ID: 7, Body: []byte("a")}, deliver)
	require.True(t, l.Expects(7))
	require.False(t, l.Expects(8))
	l.Receive(time.Now(), &Frame{Seq: 2, Message: 1, Last: true}, deliver)
	require.False(t, l.Expects(7))
}

func TestPeerThatBreaksTheRulesGetsNoFurther(t *testing.T) {
	none := func(Message) { t.Fatal("a message was delivered") }
	now := time.Now()
	for name, frame := range map[string]func(i uint64) *Frame{
		"many empty parts":        func(i uint64) *Frame { return &Frame{Seq: i, Message: i} },
		"many parts of a message": func(i uint64) *Frame { return &Frame{Seq: i, Message: 1} },
		"a message without end":   func(i uint64) *Frame { return &Frame{Seq: i, Message: 1, Body: make([]byte, PartSize)} },
		"many messages":           func(i uint64) *Frame { return &Frame{Seq: i, Message: i, Body: make([]byte, PartSize)} },
		"gaps":                    func(i uint64) *Frame { return &Frame{Seq: i + 1, Message: i, Body: make([]byte, PartSize)} },
		"sequence from the end":   func(i uint64) *Frame { return &Frame{Seq: -i, Message: i, Ack: -i, Body: make([]byte, PartSize)} },
	} {
		t.Run(name, func(t *testing.T) {
			var l Link
			for i := range uint64(2 * maxPartial / frameCost) {
				f := frame(i + 1)
				if len(f.Body) > 0 && i > 3*maxPartial/PartSize {
					break
				}
				l.Receive(now, f, none)
			}
			held := 0
			require.LessOrEqual(t, l.aheadSize, window+PartSize+frameCost)
			require.LessOrEqual(t, len(l.ahead), windowFrames)
			for _, m := range l.partial {
				held += len(m.Body)
			}
			require.LessOrEqual(t, l.partialSize, maxPartial)
			require.LessOrEqual(t, held+len(l.partial)*frameCost, maxPartial)
		})
	}
}

// FuzzLinks drives two links through a channel whose faults the input decides: which frames are
// lost, repeated and late, and what is sent when.
func FuzzLinks(f *testing.F) {
	f.Add([]byte("a few actions, in whatever order"))
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 255, 254, 253, 128, 64, 32})
	f.Fuzz(func(t *testing.T, actions []byte) {
		actions = actions[:min(len(actions), 200)]
		p := newPair(t, 1, channel{delay: time.Millisecond})
		sent := [2]int{}
		for i, a := range actions {
			side := int(a & 1)
			switch a >> 1 & 7 {
			case 0, 1:
				p.queue(side, Message{ID: uint64(i), Body: body(int(a)*200, 1)})
				sent[side]++
			case 2: // lost
				if n := len(p.to[side].frames); n > 0 {
					heap.Remove(&p.to[side].frames, int(a>>4)%n)
				}
			case 3: // repeated, late
				if n := len(p.to[side].frames); n > 0 {
					again := p.to[side].frames[int(a>>4)%n]
					again.at = again.at.Add(time.Duration(a) * 10 * time.Millisecond)
					heap.Push(&p.to[side].frames, again)
				}
			case 4: // garbage
				p.link[side].Receive(p.now, &Frame{Seq: ^uint64(0) - uint64(a), Message: uint64(a), Body: []byte{a}}, func(Message) { t.Fatal("garbage was delivered") })
			default:
				p.step()
			}
			p.tick(side)
		}
		p.run()
		require.Len(t, p.got[1], sent[0])
		require.Len(t, p.got[0], sent[1])
	})
}

func TestMessageIsWithdrawnUntilItsFirstPartIsSent(t *testing.T) {
	var a, b Link
	now := time.Unix(0, 0)
	var frames []*Frame
	send := func(f *Frame) { frames = append(frames, f) }
	large, err := a.Queue(Message{Type: "large", Body: make([]byte, 2*window)}, false)
	require.NoError(t, err)
	a.flush(now, send)
	small, err := a.Queue(Message{Type: "small"}, false)
	require.NoError(t, err)
	require.False(t, a.Withdraw(large), "some parts were sent")
	require.False(t, large.MayHaveArrived())
	require.True(t, a.Withdraw(small))
	require.False(t, a.Withdraw(small))
	var got []string
	for len(frames) > 0 {
		f := frames[0]
		frames = frames[1:]
		b.Receive(now, f, func(m Message) { got = append(got, m.Type) })
		b.flush(now, func(f *Frame) { a.Receive(now, f, nil) })
		a.flush(now, send)
	}
	require.Equal(t, []string{"large"}, got)
	require.True(t, large.MayHaveArrived())
	require.Zero(t, a.queued)
}
