package gateway

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// lingering is a gateway whose servers may take as long to start as processes.
var lingering = setup{Lingers: true, Supervisor: supervisor.Config{ConnectTimeout: startTimeout}}

// visits sends initialize, and leaves after a while.
func (w *world) visits(stay time.Duration) {
	r, last := w.raw(), len(w.ends)-1
	r.send(initialize)
	time.Sleep(stay)
	w.ends[last]()
	w.ends = w.ends[:last]
	synctest.Wait() // until the gateway has noted that the client has left
}

// A start that hangs does not keep the next client from its server, when that is well again: whether it comes after the first has
// left, or before.
func TestHungStartOfAClientThatHasLeftStopsNobody(t *testing.T) {
	for name, early := range map[string]bool{"comes later": false, "is there already": true} {
		t.Run(name, func(t *testing.T) {
			inFront(t, lingering, false, func(w *world, slow *faults.Server) {
				heal := slow.Inject("initialize", faults.Hang())
				w.silent = 1
				var next *raw
				if early {
					r := w.raw()
					r.send(initialize)
					time.Sleep(time.Second)
					next = w.raw()
					next.send(initialize)
					time.Sleep(time.Second)
					heal()
					w.ends[0]()
					w.ends = w.ends[1:]
				} else {
					w.visits(10 * time.Second)
					heal()
					next = w.raw()
					next.send(initialize)
				}
				time.Sleep(2 * time.Second)
				require.Contains(t, next.came(), "", "initialize is answered")
				require.Nil(t, next.list("tools/list").Error)
				time.Sleep(5 * time.Second)
				require.Len(t, w.everybody(), 1)
				require.Equal(t, 1, slow.Sessions())
			})
		})
	}
}

// However many clients leave while a server starts, one start continues.
func TestOneStartOfAServerLingers(t *testing.T) {
	inFront(t, lingering, false, func(w *world, slow *faults.Server) {
		heal := slow.Inject("initialize", faults.Hang())
		w.silent = 5
		for range w.silent {
			w.visits(10 * time.Second)
			time.Sleep(5 * time.Second)
			require.Len(t, w.everybody(), 1)
		}
		heal()
		took, said := w.raw().opens()
		require.Less(t, took, 2*time.Second)
		require.Contains(t, said, `"name":"faults"`)
	})
}

// A server that takes longer to start than its clients wait has started for the one that is there then.
func TestStartsOfClientsThatLeaveAddUp(t *testing.T) {
	inFront(t, lingering, false, func(w *world, slow *faults.Server) {
		slow.Inject("initialize", faults.Delay(40*time.Second))
		for range 3 {
			w.visits(11 * time.Second)
		}
		took, said := w.raw().opens()
		require.Equal(t, 7*time.Second, took)
		require.Contains(t, said, `"name":"faults"`)
		time.Sleep(time.Minute)
		require.Len(t, w.everybody(), 1)
	})
}

// What a client has opened ends when it leaves, also while another of its servers starts.
func TestOnlyAStartLingers(t *testing.T) {
	cfg := lingering
	cfg.Wait = time.Second
	inFront(t, cfg, true, func(w *world, slow *faults.Server) {
		slow.Inject("initialize", faults.Delay(time.Minute))
		r := w.raw()
		r.opens()
		require.NotNil(t, r.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"quick__count"}}`, "1").Result)
		c := w.everybody()[0]
		require.True(t, c.server("quick").isOpen(w.Context()))
		w.ends[0]()
		w.ends = nil
		time.Sleep(3 * time.Second)
		require.False(t, c.server("quick").isOpen(w.Context()))
		require.True(t, c.server("slow").isOpen(w.Context()))
		time.Sleep(time.Minute)
		require.Empty(t, w.everybody())
		require.Zero(t, slow.Sessions())
	})
}

// A client that does not have the server is not concerned.
func TestStartLingersBesideClientsOfOtherServers(t *testing.T) {
	inFront(t, lingering, true, func(w *world, slow *faults.Server) {
		other := w.dial(w.Server("quick", Scope{Ends: true}), nil)
		slow.Inject("initialize", faults.Delay(time.Minute))
		w.visits(10 * time.Second)
		time.Sleep(time.Second)
		require.Len(t, w.everybody(), 2)
		require.NoError(t, other.Close())
		time.Sleep(time.Minute)
		require.Empty(t, w.everybody())
	})
}
