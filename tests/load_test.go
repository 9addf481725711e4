package tests

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

var loadKeys = flag.Int("load.keys", 50, "keys of the load test, with 20 calls each")

// Many keys call one server at once: without faults, and with 1 % of all requests failing
// in various ways. "make load" shows the figures for 1,000 keys.
func TestLoadWithOnePercentOfTheRequestsFailing(t *testing.T) {
	t.Run("no faults", func(t *testing.T) { runLoad(t, 0) })
	t.Run("1 % fails", func(t *testing.T) { runLoad(t, 0.01) })
}

func runLoad(t *testing.T, share float64) {
	const each = 20
	cfg := supervisor.Config{
		MaxSessions: *loadKeys, CallTimeout: 5 * time.Minute, Budget: 1000, CoolDown: 100 * time.Millisecond,
		BackoffBase: 10 * time.Millisecond, BackoffMax: 100 * time.Millisecond,
	}
	overHTTP(t, cfg, func(h *harness, e *testServer) {
		heal := e.Inject("", faults.Sometimes(1, share,
			faults.Cut(), faults.CutAnswer(0), faults.CutAnswer(60), faults.Refuse(500, "oops"), faults.Refuse(503, ""),
			faults.Refuse(429, "slow down"), faults.Delay(100*time.Millisecond), e.Forget(faults.Expiries()[0]),
		))
		began := time.Now()
		failures, replays := map[messages.Code]int{}, 0
		var all []time.Duration
		for range each {
			var wave []*sentCommand // one call for each key
			for i := range *loadKeys {
				wave = append(wave, h.send(call(fmt.Sprint("scope-", i), "count")))
			}
			for _, p := range wave {
				switch r := p.reply().(type) {
				case *messages.ToolResult:
					if r.Replayed {
						replays++
					}
				case *messages.Failure:
					failures[r.Code]++
					require.NotContains(t, []messages.Code{messages.CodeDeadline, messages.CodeInternal, messages.CodeBusy}, r.Code, "%v", r)
				}
				all = append(all, p.answeredAt.Sub(p.sent))
			}
		}
		took := time.Since(began)
		heal()
		slices.Sort(all)
		counters := h.inspect().Counters
		t.Logf("%d calls of %d keys in %v; %d dials, %d expired, %d lost, %d replays; failures %v; latency p50 %v, p99 %v",
			len(all), *loadKeys, took.Round(time.Millisecond), counters.Dials, counters.Expired, counters.Lost, replays, failures,
			all[len(all)/2].Round(time.Millisecond), all[len(all)*99/100].Round(time.Millisecond))
		if share == 0 {
			require.Empty(t, failures)
			require.EqualValues(t, *loadKeys, counters.Dials)
		} else {
			require.NotEmpty(t, failures)
			require.Positive(t, counters.Expired+counters.Lost)
		}
	})
}
