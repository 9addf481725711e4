package tests

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// In each limit of each configuration 0 is the default, -1 is no limit, and any other negative value is an error that names the
// field.
func TestZeroAndMinusOneMeanTheSameInAllLimits(t *testing.T) {
	system := actor.NewActorSystem(quietLog)
	defer system.Shutdown()
	servers := []mcpbridge.Server{{Name: "s", Command: "none"}}
	started := func(cfg supervisor.Config) error {
		sup, err := supervisor.Start(system, cfg)
		if err == nil {
			require.NoError(t, sup.Stop(t.Context()))
		}
		return err
	}
	source, err := supervisor.Start(system, supervisor.Config{Servers: servers})
	require.NoError(t, err)
	defer source.Stop(t.Context())
	for _, c := range []struct {
		cfg     any
		check   func(cfg any) error
		noLimit []string // numbers and durations that are no limits
	}{
		{supervisor.Config{Servers: servers, Tenant: func(messages.Key) string { return "" }}, func(cfg any) error { return started(cfg.(supervisor.Config)) }, []string{"BackoffBase"}},
		{supervisor.DefaultStrategy{}, func(cfg any) error {
			return started(supervisor.Config{Servers: servers, Strategy: cfg.(supervisor.DefaultStrategy)})
		}, []string{"BackoffBase"}},
		{mcpbridge.Limits{}, func(cfg any) error { return cfg.(mcpbridge.Limits).Validate() }, nil},
		{servers[0], func(cfg any) error { srv := cfg.(mcpbridge.Server); return srv.Validate() }, nil},
		{mcpbridge.Cleanup{Command: "clean", Args: []string{mcpbridge.SessionMark}}, func(cfg any) error {
			srv := mcpbridge.Server{Name: "s", Command: "none", Args: []string{mcpbridge.SessionMark}, Cleanup: cfg.(mcpbridge.Cleanup)}
			return srv.Validate()
		}, nil},
		{toolset.Config{}, func(cfg any) error {
			tools, err := toolset.New(system, source, cfg.(toolset.Config))
			if err == nil {
				tools.Close()
			}
			return err
		}, nil},
		{toolset.PoolConfig{Config: func(string) toolset.Config { return toolset.Config{} }}, func(cfg any) error {
			pool, err := toolset.NewPool(system, source, cfg.(toolset.PoolConfig))
			if err == nil {
				pool.Close()
			}
			return err
		}, nil},
		{resume.Config{}, func(cfg any) error {
			store, err := resume.Open(t.TempDir()+"/store", cfg.(resume.Config))
			if err == nil {
				require.NoError(t, store.Close())
			}
			return err
		}, nil},
	} {
		of := reflect.TypeOf(c.cfg)
		limits := 0
		for i := range of.NumField() {
			field := of.Field(i)
			if !field.IsExported() || field.Type != reflect.TypeFor[int]() && field.Type != reflect.TypeFor[time.Duration]() {
				continue
			}
			limits++
			with := func(value int64) error {
				cfg := reflect.New(of).Elem()
				cfg.Set(reflect.ValueOf(c.cfg))
				cfg.Field(i).SetInt(value)
				return c.check(cfg.Interface())
			}
			name := strings.ToLower(field.Name[:1]) + field.Name[1:]
			require.NoError(t, with(0), name)
			require.ErrorContains(t, with(-2), name+": ", of)
			if !strings.Contains(strings.Join(c.noLimit, " "), field.Name) {
				require.NoError(t, with(-1), "%s.%s", of, name)
			}
		}
		require.Positive(t, limits, of)
	}
}
