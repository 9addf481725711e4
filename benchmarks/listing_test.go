package benchmarks

import (
	"container/list"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// mostProcesses bounds the stdio servers of one benchmark, and mostSessions its other sessions.
const (
	mostProcesses = 60
	mostSessions  = 600
)

// listed are the six servers that each conversation lists.
type listed struct {
	name   string
	routes []route
}

// listable returns servers in memory, over HTTP and over stdio, and three that npx starts with three over stdio.
func listable() (all []listed) {
	for _, r := range []route{overMemory(), overStdio("", ""), overJSON("")} {
		all = append(all, listed{r.name, slices.Repeat([]route{r}, 6)})
	}
	npx := listed{name: "npx"}
	for _, args := range [][]string{{"mcp-server-everything"}, {"mcp-server-memory"}, {"mcp-server-filesystem", os.TempDir()}} {
		npx.routes = append(npx.routes, overNpx(args))
	}
	npx.routes = append(npx.routes, slices.Repeat([]route{overStdio("", "")}, 3)...)
	return append(all, npx)
}

// overNpx is the way to a server that npx starts, and that make bench-others has installed.
func overNpx(args []string) route {
	args = append([]string{"--no", "--"}, args...)
	return route{
		name: "npx", server: mcpbridge.Server{Command: "npx", Args: args, Dir: "node"},
		open: func(ctx context.Context) (session, error) {
			cmd := exec.Command("npx", args...)
			cmd.Dir = "node"
			return connect(ctx, &mcp.CommandTransport{Command: cmd}, "")
		},
	}
}

// tooMany reports whether conversations with a session each for six servers are too many.
func (l *listed) tooMany(conversations int) bool {
	switch l.name {
	case "stdio", "npx":
		return conversations*len(l.routes) > mostProcesses
	}
	return conversations*len(l.routes) > mostSessions
}

// listContender has conversations list servers, and calls got when one of them has all lists. sessions returns how many
// are open then. one is true if it opens one session for each server, whatever the conversations.
type listContender struct {
	how  string
	one  bool
	list func(b *testing.B, l *listed, conversations int, got func()) (sessions func() int, end func())
}

var listContenders = []listContender{{"mutex-map", false, listMutexMap}, {"mcpactor", true, listToolsets(nil)}}

// BenchmarkListing measures the time until all of some conversations have the tools of six servers (ns/op), and until
// the first one has them, and what is open then: sessions, processes, and the memory of this process and of those.
func BenchmarkListing(b *testing.B) {
	for _, l := range listable() {
		if l.name == "npx" && (!nodeInstalled() || testing.Short()) {
			continue // it takes minutes
		}
		for _, conversations := range []int{1, 10, 100, 1000} {
			for _, one := range listContenders {
				if l.tooMany(conversations) && !one.one {
					continue
				}
				b.Run(fmt.Sprintf("transport=%s/conversations=%d/how=%s", l.name, conversations, one.how), func(b *testing.B) {
					var first time.Duration
					var sessions, processes, kilobytes int
					measureParts(b, func() time.Duration {
						processesBefore, kilobytesBefore := resident()
						var once sync.Once
						began := time.Now()
						open, end := one.list(b, &l, conversations, func() { once.Do(func() { first = time.Since(began) }) })
						took := time.Since(began)
						sessions = open()
						processes, kilobytes = resident()
						processes, kilobytes = processes-processesBefore, kilobytes-kilobytesBefore
						end()
						return took
					})
					b.ReportMetric(float64(first), "first-ns")
					b.ReportMetric(float64(sessions), "sessions")
					b.ReportMetric(float64(processes), "processes")
					b.ReportMetric(float64(kilobytes)/1024, "MB")
				})
			}
		}
	}
}

// listMutexMap lists on a session for each conversation and server.
func listMutexMap(b *testing.B, l *listed, conversations int, got func()) (sessions func() int, end func()) {
	var maps []*mutexMap
	for _, r := range l.routes {
		maps = append(maps, &mutexMap{limit: unlimited, patience: slowStart, open: r.open, entries: map[string]*list.Element{}})
	}
	var all errgroup.Group
	for i := range conversations {
		all.Go(func() error {
			var own errgroup.Group
			for _, m := range maps {
				own.Go(func() error {
					e, err := m.acquire(b.Context(), strconv.Itoa(i))
					if err != nil {
						return err
					}
					defer m.release(e, false)
					_, err = e.s.(sdkSession).ListTools(b.Context(), nil)
					return err
				})
			}
			err := own.Wait()
			got()
			return err
		})
	}
	require.NoError(b, all.Wait())
	return func() (n int) {
			for _, m := range maps {
				n += len(m.entries)
			}
			return n
		}, func() {
			for _, m := range maps {
				m.close()
			}
		}
}

// slowStart is enough for all processes of a benchmark to start on a busy machine.
const slowStart = 10 * time.Minute

// listToolsets returns what has toolsets list servers that are changed by change, unless that is nil.
func listToolsets(change func(*mcpbridge.Server)) func(*testing.B, *listed, int, func()) (func() int, func()) {
	return func(b *testing.B, l *listed, conversations int, got func()) (sessions func() int, end func()) {
		system := actor.NewActorSystem(noLog)
		cfg := supervisor.Config{
			MaxSessions: conversations * len(l.routes), MaxDials: 64, ConnectTimeout: slowStart, CallTimeout: slowStart,
		}
		for i, r := range l.routes {
			srv := r.server
			if srv.Name = fmt.Sprint("s", i); change != nil {
				change(&srv)
			}
			cfg.Servers = append(cfg.Servers, srv)
		}
		sup, err := supervisor.Start(system, cfg)
		require.NoError(b, err)
		var all errgroup.Group
		sets := make([]*toolset.Toolset, conversations)
		for i := range sets {
			sets[i], err = toolset.New(system, sup, toolset.Config{
				Scope: strconv.Itoa(i), Servers: []toolset.Filter{{Name: "*"}}, ListTimeout: slowStart,
			})
			require.NoError(b, err)
			all.Go(func() error {
				set, err := sets[i].Tools(b.Context())
				if got(); err == nil && len(set.Missing) > 0 {
					err = fmt.Errorf("missing %v", set.Missing)
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

// resident returns how many processes descend from this one, and their memory with that of this process in kilobytes.
// Both are 0 where the system does not tell.
func resident() (processes, kilobytes int) {
	debug.FreeOSMemory()
	children, sizes := map[string][]string{}, map[string]int{}
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
		sizes[fields["Pid"]], _ = strconv.Atoi(fields["VmRSS"]) // missing in a process that has ended
		children[fields["PPid"]] = append(children[fields["PPid"]], fields["Pid"])
	}
	all := []string{strconv.Itoa(os.Getpid())}
	for i := 0; i < len(all); i++ {
		kilobytes += sizes[all[i]]
		all = append(all, children[all[i]]...)
	}
	return len(all) - 1, kilobytes
}
