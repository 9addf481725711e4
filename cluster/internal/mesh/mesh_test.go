package mesh

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
)

func TestMessagesArriveInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		a, b := w.member(t, "a", nil), w.member(t, "b", nil)
		ab, ba := a.link(t, "b"), b.link(t, "a")
		send(t, ab, 1, 2, 3)
		send(t, ba, 4)
		time.Sleep(time.Second)
		require.Equal(t, []uint64{1, 2, 3}, b.ids())
		require.Equal(t, []uint64{4}, a.ids())
		require.True(t, ab.Idle())
		require.Equal(t, link.State{Connected: true}, a.last())
	})
}

// A schedule cuts, swallows and refuses connections while messages are sent in both directions, and withdrawn.
func TestMessagesArriveOnceWhateverHappensToConnections(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkDelivery(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func checkDelivery(t *testing.T, r *rand.Rand) {
	w := newWires()
	members := []*member{w.member(t, "a", nil), w.member(t, "b", nil)}
	links := []*Link{members[0].link(t, "b"), members[1].link(t, "a")}
	var want [2]map[lanedID]bool
	sent := [2]map[uint64]*link.Sent{{}, {}}
	for i := range want {
		want[i] = map[lanedID]bool{}
	}
	withdrawn := 0
	for id := range uint64(150) {
		from := r.IntN(2)
		body := make([]byte, []int{0, 10, 1000, inline + 1, largeBody, 3 * largeBody}[r.IntN(6)])
		s, err := links[from].Send(link.Message{Type: "t", ID: id, Body: body}, false)
		require.NoError(t, err)
		want[from][lanedID{id, len(body)}], sent[from][id] = true, s
		switch address := members[r.IntN(2)].cfg.Self.Host; r.IntN(14) {
		case 0, 1:
			w.cut(address)
		case 2:
			w.swallow(address, r.IntN(2) == 0, r.IntN(2) == 0)
		case 3:
			w.refusing(address, true)
		case 4:
			w.refusing(address, false)
		case 5, 6:
			for other, s := range sent[from] {
				if links[from].Withdraw(s) {
					delete(want[from], lanedID{other, len(s.Body)})
					withdrawn++
				}
				delete(sent[from], other)
				break
			}
		case 7:
			w.slow(time.Duration(r.IntN(200)) * time.Millisecond)
		case 10:
			w.slow(0)
		case 11:
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
		case 8, 9:
			time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
		}
	}
	for _, m := range members {
		w.refusing(m.cfg.Self.Host, false)
	}
	w.slow(0)
	time.Sleep(2*silence + 3*lastRetry)
	for from, l := range links {
		require.True(t, l.Idle())
		last := [2]int{-1, -1}
		for _, m := range members[1-from].messages() {
			key := lanedID{m.ID, len(m.Body)}
			require.True(t, want[from][key], "message %d came twice, or was withdrawn", m.ID)
			delete(want[from], key)
			lane := small
			if len(m.Body) >= largeBody {
				lane = large
			}
			require.Greater(t, int(m.ID), last[lane], "messages of a lane keep their order")
			last[lane] = int(m.ID)
		}
		require.Empty(t, want[from], "they have not come")
	}
}

// lanedID is a message: its number, and its size.
type lanedID struct {
	id   uint64
	size int
}

// An established connection is swallowed, in one direction or both, while new ones work.
func TestConnectionThatIsSwallowedIsReplacedWithinSeconds(t *testing.T) {
	for name, swallow := range map[string]func(w *wires){
		"both":          func(w *wires) { w.swallow("b:1", true, true) },
		"to the peer":   func(w *wires) { w.swallow("b:1", true, false) },
		"from the peer": func(w *wires) { w.swallow("b:1", false, true) },
	} {
		for _, idle := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, idle=%v", name, idle), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWires()
					a, b := w.member(t, "a", nil), w.member(t, "b", nil)
					l := a.link(t, "b")
					b.link(t, "a")
					time.Sleep(time.Second)
					send(t, l, 0)
					swallow(w)
					if idle {
						time.Sleep(silence + 2*pingFor)
					}
					began := time.Now()
					for id := range uint64(100) {
						send(t, l, id+1)
						time.Sleep(50 * time.Millisecond)
					}
					time.Sleep(time.Second)
					require.Len(t, b.ids(), 101)
					slowest := b.arrival(1).Sub(began)
					if idle {
						require.Less(t, slowest, 10*time.Millisecond, "it was replaced before")
					}
					// The peer may be heard once more when it asks for a byte, and the first dial waits a little.
					require.Less(t, slowest, pingAfter+silence+2*firstRetry)
				})
			})
		}
	}
}

func TestLinkSaysWhenItsConnectionEndsAndIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		a, b := w.member(t, "a", nil), w.member(t, "b", nil)
		a.link(t, "b")
		time.Sleep(time.Second)
		require.Equal(t, link.State{}, a.last(), "the other has no link to it yet")
		require.Equal(t, []string{"b:1: it does not know this member yet"}, a.Troubles())
		b.link(t, "a")
		time.Sleep(2 * lastRetry)
		require.Equal(t, link.State{Connected: true}, a.last())
		require.Empty(t, a.Troubles())
		w.refusing("b:1", true)
		w.cut("b:1")
		time.Sleep(time.Second)
		require.Equal(t, link.State{}, a.last())
		require.Len(t, a.Troubles(), 1)
		require.Contains(t, a.Troubles()[0], "refused")
		w.refusing("b:1", false)
		time.Sleep(2 * lastRetry)
		require.Equal(t, link.State{Connected: true}, a.last())
	})
}

func TestIdleConnectionIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		a, b := w.member(t, "a", nil), w.member(t, "b", nil)
		l := a.link(t, "b")
		b.link(t, "a")
		time.Sleep(2 * time.Second)
		l.Cast(link.Message{ID: 1})
		time.Sleep(time.Minute)
		require.Equal(t, 1, w.dials("b:1"))
	})
}

// Casts are acknowledged too: a member that only gets casts is heard.
func TestConnectionThatOnlyHasCastsIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		a, b := w.member(t, "a", nil), w.member(t, "b", nil)
		l := a.Link(link.Address{Host: "b:1"})
		b.Link(link.Address{Host: "a:1"})
		for range 200 {
			l.Cast(link.Message{})
			time.Sleep(100 * time.Millisecond)
		}
		require.Equal(t, 1, w.dials("b:1"))
		require.Len(t, b.ids(), 200)
	})
}

func TestSmallMessageDoesNotWaitForLargeOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		a, b := w.member(t, "a", nil), w.member(t, "b", nil)
		l := a.link(t, "b")
		b.link(t, "a")
		time.Sleep(time.Second)
		w.slow(time.Millisecond) // for 32 KiB
		for id := range uint64(3) {
			_, err := l.Send(link.Message{ID: 100 + id, Body: make([]byte, 10<<20)}, false)
			require.NoError(t, err)
		}
		time.Sleep(100 * time.Millisecond) // the first of them is on its way
		began := time.Now()
		send(t, l, 1, 2, 3)
		time.Sleep(20 * time.Second)
		require.Equal(t, []uint64{1, 2, 3, 100, 101, 102}, b.ids())
		require.Less(t, b.arrival(3).Sub(began), 150*time.Millisecond)
	})
}

func TestCastsAreBoundedWhileThereIsNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		a, b := w.member(t, "a", nil), w.member(t, "b", nil)
		l := a.Link(link.Address{Host: "b:1"}) // to whoever listens
		for id := range uint64(2 * maxCasts) {
			l.Cast(link.Message{ID: id})
		}
		time.Sleep(time.Second)
		b.Link(link.Address{Host: "a:1"})
		time.Sleep(2 * lastRetry)
		require.Len(t, b.ids(), maxCasts)
		require.Equal(t, uint64(2*maxCasts-1), b.ids()[maxCasts-1], "the last ones")
		w.cut("b:1")
		l.Cast(link.Message{ID: 1000})
		time.Sleep(2 * lastRetry)
		l.Cast(link.Message{ID: 1001})
		time.Sleep(time.Second)
		require.Equal(t, uint64(1001), b.ids()[len(b.ids())-1])
	})
}

func TestDroppedLinkTakesAndGivesCastsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		a, b := w.member(t, "a", nil), w.member(t, "b", nil)
		ab, ba := a.link(t, "b"), b.link(t, "a")
		time.Sleep(time.Second)
		ab.Drop()
		sent := send(t, ab, 1)
		require.True(t, ab.Withdraw(sent[0]))
		send(t, ba, 2)
		ab.Cast(link.Message{ID: 3})
		ba.Cast(link.Message{ID: 4})
		time.Sleep(5 * time.Second)
		require.Equal(t, []uint64{3}, b.ids())
		require.Equal(t, []uint64{4}, a.ids())
		ab.Close()
		ba.Cast(link.Message{ID: 5})
		time.Sleep(5 * time.Second)
		require.Equal(t, []uint64{4}, a.ids())
	})
}

func TestStrangersChangeNothingAndLearnNothing(t *testing.T) {
	for name, set := range map[string]func(*Config){
		"another cluster":                func(c *Config) { c.Cluster = "another" },
		"another cluster and version":    func(c *Config) { c.Cluster, c.Version = "another", 7 },
		"not a member":                   func(c *Config) { c.Self.ID = "x" },
		"not a member, another version":  func(c *Config) { c.Self.ID, c.Version = "x", 7 },
		"a member, from another address": func(c *Config) { c.Self.Host = "x:1" },
		"a name that is no text":         func(c *Config) { c.Cluster = "\xff\x00" },
		"nobody":                         func(c *Config) { c.Self = link.Address{} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWires()
				b := w.member(t, "b", nil)
				b.link(t, "a")
				stranger := w.member(t, "a", set)
				l := stranger.link(t, "b")
				send(t, l, 1)
				l.Cast(link.Message{ID: 2})
				stranger.Link(link.Address{Host: "b:1"}).Cast(link.Message{ID: 3})
				time.Sleep(3 * time.Second)
				require.Empty(t, b.ids())
				for _, s := range stranger.told() {
					require.Equal(t, link.State{}, s)
				}
				for _, text := range stranger.refusals() {
					require.Equal(t, errStranger.Error(), text)
				}
				require.NotEmpty(t, stranger.refusals())
				require.Zero(t, w.dials("x:1"), "nobody makes it dial")
			})
		})
	}
}

// What hosts cast to whoever listens, such as the messages of raft, says the same first.
func TestCastsOfStrangersToAHostAreNotRead(t *testing.T) {
	for name, set := range map[string]func(*Config){
		"another cluster":                 func(c *Config) { c.Cluster = "another" },
		"another version":                 func(c *Config) { c.Version = 7 },
		"a host that is not listed":       func(c *Config) { c.Self.Host = "x:1" },
		"a host that is listed, for once": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWires()
				b := w.member(t, "b", nil)
				b.Link(link.Address{Host: "a:1"})
				stranger := w.member(t, "a", set)
				stranger.Link(link.Address{Host: "b:1"}).Cast(link.Message{ID: 1})
				time.Sleep(3 * time.Second)
				if set == nil {
					require.Equal(t, []uint64{1}, b.ids())
					return
				}
				require.Empty(t, b.ids())
				require.NotEmpty(t, stranger.refusals())
				require.Zero(t, w.dials("x:1"), "nobody makes it dial")
			})
		})
	}
}

// A caller that does not say who it is, once and first, is not read.
func TestStreamWithoutAHelloIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		a, b := w.member(t, "a", nil), w.member(t, "b", nil)
		l := a.link(t, "b")
		b.link(t, "a")
		time.Sleep(2 * lastRetry)
		hello := `{"cluster":"test","version":1,"from":{"id":"a","host":"a:1"},"to":"b"}`
		for want, texts := range map[error][][]string{
			errStranger: {nil, {""}, {"{}"}, {hello, hello}, {hello[1:]}, {strings.Replace(hello, `"test"`, `"Test"`, 1)}, {strings.Replace(hello, "}", `,"lane":3}`, 2)}},
			nil:         {{hello}},
		} {
			for _, text := range texts {
				ctx := t.Context()
				for _, one := range text {
					ctx = metadata.AppendToOutgoingContext(ctx, helloKey, one)
				}
				s, err := l.conn.NewStream(ctx, &streamOf, Method)
				require.NoError(t, err)
				if err := s.SendMsg(&frame{messages: []link.Message{{ID: 1}}}); err != nil {
					require.ErrorIs(t, err, io.EOF, "it is refused already")
				}
				require.ErrorIs(t, s.RecvMsg(new(count)), want, "%q", text)
				synctest.Wait()
				require.Equal(t, want == nil, len(b.ids()) > 0)
				b.mu.Lock()
				b.got = nil
				b.mu.Unlock()
			}
		}
	})
}

func TestMemberLearnsThatAnotherHasEndedOrSpeaksAnotherVersion(t *testing.T) {
	for _, version := range []uint32{1, 7} {
		synctest.Test(t, func(t *testing.T) {
			w := newWires()
			a, b := w.member(t, "a", nil), w.member(t, "b", func(c *Config) { c.Self.ID, c.Version = "successor", version })
			send(t, a.Link(link.Address{ID: "predecessor", Host: "b:1"}), 1)
			b.link(t, "a")
			time.Sleep(2 * lastRetry)
			require.Equal(t, link.State{Ended: true}, a.last())
			require.Empty(t, b.ids())
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		a, b := w.member(t, "a", nil), w.member(t, "b", func(c *Config) { c.Version = 7 })
		send(t, a.link(t, "b"), 1)
		send(t, b.link(t, "a"), 2)
		time.Sleep(2 * lastRetry)
		require.Equal(t, link.State{Version: 7}, a.last())
		require.Equal(t, link.State{Version: 1}, b.last())
		require.Empty(t, a.ids())
		require.Empty(t, b.ids())
	})
}

func TestOtherMethodsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		a, b := w.member(t, "a", nil), w.member(t, "b", nil)
		l := a.link(t, "b")
		b.link(t, "a")
		s, err := l.conn.NewStream(t.Context(), &streamOf, "/remote.Remoting/Receive")
		require.NoError(t, err)
		require.ErrorIs(t, s.RecvMsg(new(count)), errStranger)
	})
}

func TestWithoutCredentialsAMemberDialsThisMachineOnly(t *testing.T) {
	w := newWires()
	a := w.member(t, "a", nil)
	for host, want := range map[string]error{"192.0.2.1": errNotLocal, "127.0.0.1": nil, "::1": nil} {
		a.cfg.Dial = dialTo(host)
		conn, err := a.dial(context.Background(), "b:1")
		require.ErrorIs(t, err, want, host)
		if err == nil {
			conn.Close()
		}
	}
}

// What a stream has told its client is final, although messages of the previous one may be decoded just now.
func TestStreamThatWasReplacedDeliversNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWires()
		b := w.member(t, "b", nil)
		l := b.link(t, "a")
		first, second := newReceiver(t.Context(), l, small, nil), newReceiver(t.Context(), l, small, nil)
		begin := func(r *receiver) uint64 {
			got, ok := r.lane.begin(r)
			require.True(t, ok)
			return got
		}
		require.Zero(t, begin(first))
		require.True(t, first.deliver(link.Message{}))
		require.True(t, first.deliver(link.Message{}))
		require.Equal(t, uint64(2), begin(second))
		require.False(t, first.deliver(link.Message{}))
		require.True(t, second.deliver(link.Message{}))
		l.Drop()
		require.False(t, second.deliver(link.Message{}))
		_, ok := first.lane.begin(first)
		require.False(t, ok)
		require.Len(t, b.ids(), 3)
	})
}
