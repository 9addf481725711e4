package benchmarks

import (
	"container/list"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// listedServers is how many servers each conversation lists.
const listedServers = 6

// mostProcesses bounds the processes of one benchmark.
const mostProcesses = 60

// BenchmarkListing measures the time until all of some conversations have the tools of six servers, and what is open
// then. how=alone is mcpactor with scopes that share nothing.
func BenchmarkListing(b *testing.B) {
	for _, r := range []route{overMemory(), overStdio("", ""), overJSON("")} {
		for _, conversations := range []int{1, 10, 100, 1000} {
			for _, one := range []struct {
				how  string
				list lister
			}{
				{"mutex-map", listMutexMap},
				{"alone", listToolsets(func(messages.Key) string { return "" })},
				{"mcpactor", listToolsets(nil)},
			} {
				if one.how != "mcpactor" && (conversations == 1000 || r.name == "stdio" && conversations*listedServers > mostProcesses) {
					continue // one session for each conversation and server
				}
				b.Run(fmt.Sprintf("transport=%s/conversations=%d/how=%s", r.name, conversations, one.how), func(b *testing.B) {
					var sessions, kilobytes int
					measureParts(b, func() time.Duration {
						before, began := resident(), time.Now()
						open, end := one.list(b, r, conversations)
						took := time.Since(began)
						sessions, kilobytes = open(), resident()-before
						end()
						return took
					})
					b.ReportMetric(float64(sessions), "sessions")
					b.ReportMetric(float64(kilobytes)/1024, "MB")
				})
			}
		}
	}
}

// lister has conversations list the servers of a route. sessions returns how many sessions are open then.
type lister func(b *testing.B, r route, conversations int) (sessions func() int, end func())

// listMutexMap lists on a session for each conversation and server.
func listMutexMap(b *testing.B, r route, conversations int) (sessions func() int, end func()) {
	m := &mutexMap{limit: unlimited, open: r.open, entries: map[string]*list.Element{}}
	var all errgroup.Group
	for i := range conversations * listedServers {
		all.Go(func() error {
			e, err := m.acquire(b.Context(), strconv.Itoa(i))
			if err != nil {
				return err
			}
			defer m.release(e, false)
			_, err = e.s.(sdkSession).ListTools(b.Context(), nil)
			return err
		})
	}
	require.NoError(b, all.Wait())
	return func() int { return len(m.entries) }, m.close
}

// listToolsets returns a lister of toolsets. class is that of the servers.
func listToolsets(class func(messages.Key) string) lister {
	return func(b *testing.B, r route, conversations int) (sessions func() int, end func()) {
		system := actor.NewActorSystem(noLog)
		cfg := supervisor.Config{MaxSessions: conversations * listedServers, MaxDials: 64}
		for i := range listedServers {
			srv := r.server
			srv.Name, srv.ListClass = fmt.Sprint("s", i), class
			cfg.Servers = append(cfg.Servers, srv)
		}
		sup, err := supervisor.Start(system, cfg)
		require.NoError(b, err)
		var all errgroup.Group
		sets := make([]*toolset.Toolset, conversations)
		for i := range sets {
			sets[i], err = toolset.New(system, sup, toolset.Config{Scope: strconv.Itoa(i), Servers: []toolset.Server{{Name: "*"}}})
			require.NoError(b, err)
			all.Go(func() error {
				set, err := sets[i].Tools(b.Context())
				if err == nil && len(set.Tools) != listedServers {
					err = fmt.Errorf("%d tools, missing %v", len(set.Tools), set.Missing)
				}
				return err
			})
		}
		require.NoError(b, all.Wait())
		return func() int {
				snapshot, err := sup.Client().Inspect(b.Context())
				require.NoError(b, err)
				return snapshot.Total
			}, func() {
				for _, set := range sets {
					set.Close()
				}
				require.NoError(b, sup.Stop(context.Background()))
			}
	}
}

// resident returns the memory of this process and of its children in kilobytes, or 0 where the system does not tell.
func resident() (kilobytes int) {
	debug.FreeOSMemory()
	self := strconv.Itoa(os.Getpid())
	files, _ := filepath.Glob("/proc/[0-9]*/status") // the pattern is well-formed
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil { // it has ended
			continue
		}
		fields := map[string]string{}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(line, ":")
			fields[name] = strings.TrimSuffix(strings.TrimSpace(value), " kB")
		}
		if fields["Pid"] == self || fields["PPid"] == self {
			size, _ := strconv.Atoi(fields["VmRSS"]) // missing in a process that has ended
			kilobytes += size
		}
	}
	return kilobytes
}
