package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/internal/listfile"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/toolset"
)

func TestFirstWait(t *testing.T) {
	for _, c := range []struct {
		servers   int
		wanted    time.Duration
		wasSilent bool
		over      time.Duration // when a server that has answered nothing is waited for no longer, or zero
		answered  time.Duration // when one that has answered is not
	}{
		{1, 0, false, 0, 25 * time.Second},
		{1, 0, true, 0, 25 * time.Second},
		{1, 50 * time.Second, false, 50 * time.Second, 50 * time.Second},
		{1, 50 * time.Second, true, time.Second, time.Second},
		{2, 0, false, 25 * time.Second, 25 * time.Second},
		{2, 0, true, time.Second, time.Second},
		{2, 50 * time.Second, false, 50 * time.Second, 50 * time.Second},
	} {
		w := firstWait(c.servers, c.wanted, c.wasSilent)
		require.NotEqual(t, noWait, w)
		require.False(t, w.isOver(c.answered-1, true), "%+v", c)
		require.True(t, w.isOver(c.answered, true), "%+v", c)
		require.False(t, w.isOver(max(c.over, 1)-1, false), "%+v", c)
		require.Equal(t, c.over != 0, w.isOver(max(c.over, time.Hour), false), "%+v", c)
		require.Equal(t, min(c.answered, listPatience), w.rest(0).most, "%+v", c)
		least := time.Duration(0)
		if c.over == 0 {
			least = time.Second
		}
		require.Equal(t, least, w.rest(c.answered+time.Hour).most, "%+v", c)
		require.Equal(t, 500*time.Millisecond, w.pause(c.answered-500*time.Millisecond), "%+v", c)
		require.Equal(t, time.Second, w.pause(c.answered), "%+v", c)
	}
}

// inFront runs a scenario in a bubble of fake time, in front of the server "slow" over HTTP and perhaps the server "quick".
func inFront(t *testing.T, cfg setup, both bool, scenario func(w *world, slow *faults.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		slow, quick, end := twoServers()
		defer end()
		cfg.Tools, cfg.Supervisor.Servers = []toolset.Filter{{Name: "slow"}}, []mcpbridge.Server{remote("slow", slow)}
		if both {
			cfg.Prefixed = true
			cfg.Tools = append(cfg.Tools, toolset.Filter{Name: "quick"})
			cfg.Supervisor.Servers = append(cfg.Supervisor.Servers, remote("quick", quick))
		}
		w := worldOf(t, cfg)
		defer w.stop()
		scenario(w, slow)
	})
}

// opens opens a client, and returns how long that takes, and what the server says.
func (r *raw) opens() (time.Duration, string) {
	began := time.Now()
	said := r.open()
	return time.Since(began), said
}

// lists asks for a list, and returns how long that takes, and the answer.
func (r *raw) lists(method string) (time.Duration, *mcpserver.Message) {
	began := time.Now()
	answer := r.list(method)
	return time.Since(began), answer
}

// initialize waits for one server as long as the client does, and then all its lists are there.
func TestInitializeWaitsForOneServerUntilItAnswers(t *testing.T) {
	for _, start := range []time.Duration{2 * time.Second, 9 * time.Second, 25 * time.Second, 40 * time.Second, 55 * time.Second} {
		t.Run(start.String(), func(t *testing.T) {
			inFront(t, setup{}, false, func(w *world, slow *faults.Server) {
				slow.Inject("initialize", faults.Delay(start))
				for _, kind := range []string{"prompts", "resources", "resources/templates"} {
					slow.Inject(kind+"/list", faults.Delay(time.Second))
				}
				r := w.raw()
				took, said := r.opens()
				require.Contains(t, said, `"name":"faults"`)
				require.Equal(t, start+time.Second, took)
				for _, method := range everyList {
					took, answer := r.lists(method)
					require.Nil(t, answer.Error, method)
					require.Zero(t, took, method)
				}
				require.Empty(t, r.came())
				require.Equal(t, 1, slow.Count("initialize"))
			})
		})
	}
}

// One server that fails is waited for no longer: whether at once, or after a while, or because it has answered nothing in the time
// that a client gives it.
func TestInitializeWaitsForOneServerUntilItFails(t *testing.T) {
	for name, c := range map[string]struct {
		fail func(*faults.Server)
		wait time.Duration
		says string
	}{
		"down":    {func(e *faults.Server) { e.Stop() }, downPatience, "refused"},
		"refuses": {func(e *faults.Server) { e.Inject("initialize", faults.Refuse(http.StatusUnauthorized, "")) }, 0, "401"},
		"dies": {func(e *faults.Server) {
			e.Inject("initialize", faults.Hang())
			time.AfterFunc(8500*time.Millisecond, e.Stop)
		}, 9 * time.Second, "refused"},
		"hangs": {func(e *faults.Server) { e.Inject("initialize", faults.Hang()) }, time.Minute, "timed out while connecting"},
	} {
		t.Run(name, func(t *testing.T) {
			inFront(t, setup{}, false, func(w *world, slow *faults.Server) {
				c.fail(slow)
				r := w.raw()
				took, said := r.opens()
				require.Contains(t, said, `"name":"mcpactor"`)
				require.InDelta(t, c.wait, took, float64(downPatience), "%v", took)
				took, answer := r.lists("tools/list")
				require.Contains(t, answer.Error.Message, c.says)
				require.Zero(t, took)
			})
		})
	}
}

// initialize waits 25 s for several servers, but not again for one that was silent for so long: until it has answered. Another
// process knows that too.
func TestInitializeWaitsForASilentServerOnce(t *testing.T) {
	for name, store := range map[string]mcpbridge.Store{"in a process": nil, "in a folder": &listfile.Store{Folder: t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			next := func(scenario func(w *world, slow *faults.Server)) { inFront(t, setup{Lists: store}, true, scenario) }
			kind := 0
			another := func(w *world) (took time.Duration, r *raw) { // of another kind: it has lists of its own
				kind++
				r, began := w.raw(), time.Now()
				r.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"k%d","version":"1"}}}`, kind), "1")
				return time.Since(began), r
			}
			silent := func(w *world) {
				took, r := another(w)
				require.Equal(t, firstPatience, took)
				took, answer := r.lists("tools/list")
				require.Contains(t, string(answer.Result), `"quick__count"`)
				require.NotContains(t, string(answer.Result), `"slow__count"`)
				require.Zero(t, took)
			}
			answers := func(w *world, slow *faults.Server, startsFaster func()) {
				took, r := another(w)
				require.Equal(t, downPatience, took, "it was silent")
				r.list("tools/list")
				time.Sleep(40 * time.Second)
				require.Equal(t, 1, r.came()["notifications/tools/list_changed"])
				_, answer := r.lists("tools/list")
				require.Contains(t, string(answer.Result), `"slow__count"`)
				startsFaster()
				slow.Inject("initialize", faults.Delay(10*time.Second))
				took, _ = another(w)
				require.Equal(t, 10*time.Second, took, "it has answered")
			}
			if store == nil {
				next(func(w *world, slow *faults.Server) {
					startsFaster := slow.Inject("initialize", faults.Delay(40*time.Second))
					silent(w)
					answers(w, slow, startsFaster)
				})
				return
			}
			next(func(w *world, slow *faults.Server) {
				slow.Inject("initialize", faults.Delay(40*time.Second))
				w.silent = 1
				silent(w)
			})
			next(func(w *world, slow *faults.Server) {
				answers(w, slow, slow.Inject("initialize", faults.Delay(30*time.Second)))
			})
		})
	}
}

// A server that has answered initialize, but does not list, is waited for 25 s, and its lists 4 s. What it need not have is waited for
// 4 s, and hides no tool.
func TestListThatDoesNotComeEndsTheWait(t *testing.T) {
	for _, c := range []struct {
		slow string
		wait time.Duration
	}{{"tools/list", firstPatience}, {"prompts/list", listPatience}, {"resources/templates/list", listPatience}} {
		t.Run(c.slow, func(t *testing.T) {
			inFront(t, setup{}, false, func(w *world, slow *faults.Server) {
				slow.Inject(c.slow, faults.Delay(time.Minute))
				r := w.raw()
				took, said := r.opens()
				require.Equal(t, c.wait, took)
				if c.slow != "tools/list" {
					require.Contains(t, said, `"name":"faults"`)
				}
				for _, method := range everyList {
					took, answer := r.lists(method)
					require.LessOrEqual(t, took, listPatience, method)
					require.Equal(t, method == c.slow, answer.Error != nil, method)
				}
				time.Sleep(time.Minute)
				require.Positive(t, len(r.came()))
				require.Nil(t, r.list(c.slow).Error)
			})
		})
	}
}

// What a client asks for while initialize waits is answered right after it.
func TestListsThatAreAskedForWhileInitializeWaitsFollowIt(t *testing.T) {
	inFront(t, setup{}, false, func(w *world, slow *faults.Server) {
		slow.Inject("initialize", faults.Delay(20*time.Second))
		r := w.raw()
		r.send(initialize)
		time.Sleep(time.Second)
		for i, method := range everyList {
			took, answer := r.lists(method)
			require.Nil(t, answer.Error, method)
			require.Equal(t, i == 0, took == 19*time.Second, "%s %v", method, took)
			require.LessOrEqual(t, took, 19*time.Second)
		}
	})
}

// With Lingers, the start of a server continues when its client leaves, so that the next client is answered at once. Else it ends.
func TestStartOutlivesItsClientIfItLingers(t *testing.T) {
	for _, lingers := range []bool{true, false} {
		t.Run(fmt.Sprint(lingers), func(t *testing.T) {
			inFront(t, setup{Lingers: lingers, Wait: 2 * time.Second}, false, func(w *world, slow *faults.Server) {
				remove := slow.Inject("initialize", faults.Delay(50*time.Second))
				leaves := func() {
					r, last := w.raw(), len(w.ends)-1
					took, _ := r.opens()
					require.Equal(t, 2*time.Second, took)
					w.ends[last]()
					w.ends = w.ends[:last]
				}
				leaves()
				time.Sleep(time.Minute)
				require.Empty(t, w.everybody())
				require.Zero(t, slow.Sessions())
				remove()
				slow.Inject("initialize", faults.Delay(5*time.Second))
				took, said := w.raw().opens()
				if lingers {
					require.Zero(t, took)
					require.Contains(t, said, `"name":"faults"`)
				} else {
					require.Equal(t, downPatience, took)
				}
			})
		})
	}
}

// A start that lingers ends with the gateway, and so does the wait for it. Stop takes as long as it may for any server that hangs: what it
// closes in vain, the supervisor tries to close once more.
func TestStartThatLingersEndsWithTheGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
		slow, quick, end := twoServers()
		defer end()
		quick.Stop()
		slow.Inject("initialize", faults.Hang())
		cfg := setup{Lingers: true, Prefixed: true, Wait: time.Second, Tools: []toolset.Filter{{Name: "slow"}, {Name: "down"}}}
		cfg.Supervisor.Servers = []mcpbridge.Server{remote("slow", slow), remote("down", quick)}
		w := worldOf(t, cfg)
		w.silent = 1
		w.raw().open()
		w.ends[0]()
		w.ends = nil
		time.Sleep(10 * time.Second)
		require.Len(t, w.everybody(), 1)
		began := time.Now()
		w.stop()
		require.LessOrEqual(t, time.Since(began), 3*closePatience)
		require.Empty(t, w.everybody())
	})
}

// Calls wait for a server that takes longer to start than a server that is down is waited for, and so do those behind another.
func TestCallWaitsForAServerThatStarts(t *testing.T) {
	for start, ends := range map[time.Duration]time.Duration{40 * time.Second: 40 * time.Second, 58 * time.Second: startPatience} {
		t.Run(start.String(), func(t *testing.T) {
			store := &listfile.Store{Folder: t.TempDir()}
			inFront(t, setup{Lists: store}, false, func(w *world, _ *faults.Server) {
				w.raw().opens()
				time.Sleep(5 * time.Second) // the store is written
			})
			inFront(t, setup{Lists: store}, false, func(w *world, slow *faults.Server) {
				slow.Inject("initialize", faults.Delay(start))
				r := w.raw()
				took, _ := r.opens()
				require.Zero(t, took)
				began := time.Now()
				r.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count"}}`)
				r.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"count"}}`)
				for range 2 {
					answer := r.await(func(m *mcpserver.Message) bool { return m.Result != nil })
					require.Equal(t, ends, time.Since(began))
					require.Equal(t, start != ends, mcpserver.ObjectOf(answer.Result)["isError"] != nil, "%s", answer.Result)
				}
			})
		})
	}
}

// A server whose tools are kept is not waited for because of a list that is not, nor started for it.
func TestKeptToolsAreEnoughForInitialize(t *testing.T) {
	store := &listfile.Store{Folder: t.TempDir()}
	inFront(t, setup{Lists: store}, false, func(w *world, slow *faults.Server) {
		slow.Inject("prompts/list", faults.Refuse(http.StatusInternalServerError, ""))
		w.raw().opens()
		time.Sleep(10 * time.Second) // the store is written
	})
	inFront(t, setup{Lists: store}, false, func(w *world, slow *faults.Server) {
		slow.Inject("initialize", faults.Delay(10*time.Second))
		w.silent = 1
		r := w.raw()
		took, said := r.opens()
		require.Contains(t, said, `"name":"faults"`)
		require.Zero(t, took)
		time.Sleep(time.Second)
		require.Zero(t, slow.Count("initialize"))
		took, answer := r.lists("prompts/list")
		require.NotNil(t, answer.Error)
		require.Equal(t, listPatience, took)
	})
}

// A client that gives up before initialize is answered does not wait again.
func TestClientThatGivesUpConnectsNextTime(t *testing.T) {
	inFront(t, setup{}, true, func(w *world, slow *faults.Server) {
		slow.Inject("initialize", faults.Delay(40*time.Second))
		w.silent = 3
		w.visits(3 * time.Second)
		require.False(w, w.endpoints["slow"].was(), "it has other reasons")
		w.visits(10 * time.Second)
		took, said := w.raw().opens()
		require.Equal(t, downPatience, took)
		require.Contains(t, said, "tools")
	})
}

// A client is told once which servers are left out.
func TestServersThatAreLeftOutAreToldOnce(t *testing.T) {
	inFront(t, setup{LeftOut: []string{"broken: no such file"}}, true, func(w *world, _ *faults.Server) {
		r := w.raw()
		r.open()
		for _, method := range everyList {
			r.list(method)
			r.list(method)
		}
		require.Equal(t, 1, r.came()["notifications/message"])
	})
}

// A server that stops being down just when a client asks is waited for: the client has not left.
func TestServerThatIsDownNoLongerIsWaitedFor(t *testing.T) {
	inFront(t, setup{}, false, func(w *world, _ *faults.Server) {
		w.raw().opens()
		s := w.everybody()[0].server("slow")
		for range 20 {
			s.endpoint.noteDown(errors.New("it is down"))
			go s.endpoint.noteDown(nil)
			require.Error(t, s.await(w.Context(), make(chan struct{}), shortWait))
		}
	})
}
