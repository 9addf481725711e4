package reports

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// What is reported of a session, and counted: nothing of one that was never open but that it was given up.
func TestWhatIsReportedOfASession(t *testing.T) {
	fault := func(class mcpbridge.Class, dialing bool) *actors.Fault {
		return &actors.Fault{Class: class, Dialing: dialing, Cause: &mcpbridge.Error{Class: class, Detail: "cause"}}
	}
	for _, test := range []struct {
		does    func(r *Reports, reg *table.Registration)
		open    []string // events of a session that was open
		counted messages.Counters
		unopen  []string // of one that was not
	}{
		{
			func(r *Reports, reg *table.Registration) { r.Opened(reg, &contract.Opened{}) },
			[]string{"SessionOpened"},
			messages.Counters{Opened: 1},
			[]string{"SessionOpened"},
		},
		{
			func(r *Reports, reg *table.Registration) {
				r.Opened(reg, &contract.Opened{Restarted: true, Expired: 2})
			},
			[]string{"SessionExpired", "SessionRestarted"},
			messages.Counters{Expired: 1},
			[]string{"SessionExpired", "SessionRestarted"},
		},
		{
			func(r *Reports, reg *table.Registration) { r.Faulted(reg, fault(mcpbridge.Lost, false)) },
			[]string{"SessionLost"},
			messages.Counters{Lost: 1},
			[]string{"SessionLost"},
		},
		{
			func(r *Reports, reg *table.Registration) { r.Faulted(reg, fault(mcpbridge.Expired, false)) },
			[]string{"SessionExpired"},
			messages.Counters{Expired: 1},
			[]string{"SessionExpired"},
		},
		{func(r *Reports, reg *table.Registration) { r.Faulted(reg, fault(mcpbridge.Lost, true)) }, nil, messages.Counters{}, nil},
		{
			func(r *Reports, reg *table.Registration) {
				r.Decided(reg, fault(mcpbridge.Lost, true), actors.Directive{})
			},
			[]string{"SessionRestarting"},
			messages.Counters{},
			nil,
		},
		{
			func(r *Reports, reg *table.Registration) {
				r.Decided(reg, fault(mcpbridge.Lost, true), actors.Directive{GiveUp: true})
			},
			[]string{"SessionGaveUp"},
			messages.Counters{GaveUp: 1},
			[]string{"SessionGaveUp"},
		},
		{
			func(r *Reports, reg *table.Registration) { r.Evicted(reg, messages.EvictIdle) },
			[]string{"SessionEvicted"},
			messages.Counters{Evicted: 1},
			nil,
		},
		{
			func(r *Reports, reg *table.Registration) { r.Closed(reg, &contract.SessionClosed{}) },
			[]string{"SessionClosed"},
			messages.Counters{Closed: 1},
			nil,
		},
	} {
		for _, open := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				var published []string
				cfg := &contract.Config{Config: protocol.Config{
					Logger: relay.NewLogger(zerolog.New(new(bytes.Buffer))),
					Events: relay.New(10, func(event any) { published = append(published, fmt.Sprintf("%T", event)[len("*messages."):]) }, nil, nil),
				}}
				r := New(cfg)
				test.does(r, &table.Registration{Key: messages.Key{Server: "s", Scope: "a"}, Connection: table.Connection{WasOpen: open}})
				synctest.Wait()
				if !open {
					require.Equal(t, test.unopen, published)
					return
				}
				require.Equal(t, test.open, published)
				require.Equal(t, test.counted, r.Counters)
			})
		}
	}
}
