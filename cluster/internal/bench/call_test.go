//go:build unix

package bench

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/mcpactor/mcpactor/supervisor"
)

// contender is a way to call a tool.
type contender struct {
	name string
	call func(context.Context) error
}

// contenders returns the ways to call a tool of a server: on a bare session of the SDK, through a
// supervisor without a cluster, and through a member whose session is its own or that of another
// member.
func contenders(b *testing.B, r route) (all []contender) {
	if r.bare != nil {
		transport, err := r.bare(b.Context())
		require.NoError(b, err)
		session, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(b.Context(), transport, nil)
		require.NoError(b, err)
		b.Cleanup(func() { session.Close() })
		all = append(all, contender{"bare", func(ctx context.Context) error {
			_, err := session.CallTool(ctx, params())
			return err
		}})
	}
	members := clusterOf(b, 2, r, 0)
	add := func(name string, c *supervisor.Client, scope string) {
		all = append(all, contender{name, func(ctx context.Context) error {
			_, err := call(ctx, c, scope)
			return err
		}})
	}
	add("alone", alone(b, r), "conversation")
	client := members[0].Client()
	add("own", client, scopeOn(b, client, "member-0"))
	add("other", client, scopeOn(b, client, "member-1"))
	return all
}

// bareGRPC is a unary call of gRPC with a message of the size of a small call, over a connection of its own. It does nothing
// else: no actor, no queue, no encoding of arguments.
func bareGRPC(b *testing.B) contender {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	server := grpc.NewServer()
	const service, method = "bench.Echo", "Call"
	server.RegisterService(&grpc.ServiceDesc{ServiceName: service, HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{
		MethodName: method,
		Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			message := new(wrapperspb.BytesValue)
			return message, decode(message)
		},
	}}}, nil)
	go server.Serve(listener)
	b.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(b, err)
	b.Cleanup(func() { conn.Close() })
	message := wrapperspb.Bytes(make([]byte, 200))
	return contender{"grpc", func(ctx context.Context) error {
		return conn.Invoke(ctx, "/"+service+"/"+method, message, new(wrapperspb.BytesValue))
	}}
}

// BenchmarkCall calls a tool on an open session. Beside it, gRPC alone sends a message and its answer.
func BenchmarkCall(b *testing.B) {
	for _, r := range []route{overNothing(5), overMemory(), overHTTP(b)} {
		all := contenders(b, r)
		if r.dialer != nil {
			all = append(all, bareGRPC(b))
		}
		for _, callers := range []int{1, 64} {
			for _, one := range all {
				b.Run(fmt.Sprintf("transport=%s/callers=%d/how=%s", r.transport, callers, one.name), func(b *testing.B) { measure(b, callers, one) })
			}
		}
	}
}

// measure makes calls from several goroutines, and reports the CPU time. With one caller, it reports
// the median latency, too.
func measure(b *testing.B, callers int, one contender) {
	b.ReportAllocs()
	require.NoError(b, one.call(b.Context())) // opens the session
	defer countCPU(b)()
	if callers == 1 {
		var latencies []time.Duration
		for b.Loop() {
			began := time.Now()
			if err := one.call(b.Context()); err != nil {
				b.Fatal(err)
			}
			latencies = append(latencies, time.Since(began))
		}
		reportLatency(b, latencies, 0.5)
		return
	}
	b.SetParallelism(callers / 2) // for each of the processors
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := one.call(b.Context()); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// reportLatency reports a quantile of latencies.
func reportLatency(b *testing.B, latencies []time.Duration, quantile float64) {
	slices.Sort(latencies)
	b.ReportMetric(float64(latencies[int(quantile*float64(len(latencies)-1))]), fmt.Sprintf("p%g-ns", 100*quantile))
}

// sizes are those of large results.
var sizes = []struct {
	name  string
	bytes int
}{{"1MB", 1_000_000}, {"10MB", 10_000_000}}

// BenchmarkLarge calls a tool whose result is a large text. The sessions answer at once, without MCP.
func BenchmarkLarge(b *testing.B) {
	for _, size := range sizes {
		for _, one := range contenders(b, overNothing(size.bytes)) {
			b.Run(fmt.Sprintf("size=%s/how=%s", size.name, one.name), func(b *testing.B) { measure(b, 1, one) })
		}
	}
}

// BenchmarkSmallBesideLarge makes small calls to another member, while nothing else runs, or while a
// result of 10 MB is on its way from that member.
func BenchmarkSmallBesideLarge(b *testing.B) {
	r := overNothing(5)
	r.dialer = bySize{small: instant{"small"}, large: overNothing(10_000_000).dialer.(instant)}
	members := clusterOf(b, 2, r, 0)
	client := members[0].Client()
	small, large := scopeOn(b, client, "member-1"), largeScope
	for i := range 1000 { // a large scope on the same member
		large = fmt.Sprint(largeScope, i)
		if on, err := call(b.Context(), client, large); err == nil && on == "member-1" {
			break
		}
	}
	for _, beside := range []bool{false, true} {
		b.Run(fmt.Sprintf("large=%v", beside), func(b *testing.B) {
			ctx, stop := context.WithCancel(b.Context())
			var wait sync.WaitGroup
			var results int
			if beside {
				wait.Go(func() {
					for ctx.Err() == nil {
						if _, err := call(ctx, client, large); err == nil {
							results++
						}
					}
				})
			}
			var latencies []time.Duration
			began := time.Now()
			for b.Loop() {
				began := time.Now()
				if _, err := call(b.Context(), client, small); err != nil {
					b.Fatal(err)
				}
				latencies = append(latencies, time.Since(began))
			}
			took := time.Since(began)
			stop()
			wait.Wait()
			for _, quantile := range []float64{0.5, 0.99, 1} {
				reportLatency(b, latencies, quantile)
			}
			b.ReportMetric(float64(results)/took.Seconds(), "large/s")
		})
	}
}
