package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// oneKeyDialer opens sessions that answer at once. All keys but "warm" wait for their
// session until the gate opens.
type oneKeyDialer struct{ instantDialer }

func (d oneKeyDialer) Dial(ctx context.Context, req mcpbridge.DialRequest) (mcpbridge.Conn, error) {
	if req.Key.Scope != "warm" {
		return d.instantDialer.Dial(ctx, req)
	}
	return instantConn{}, nil
}

// stuckWriter is a log writer that blocks until it is closed.
type stuckWriter chan struct{}

func (w stuckWriter) Write(p []byte) (int, error) {
	<-w
	return len(p), nil
}

var _ io.Writer = stuckWriter(nil)

// BenchmarkCallBesideWaitingCalls measures a call of one key, and an Inspect of 100
// sessions: alone, while 100,000 calls of 20,000 other keys wait, and while 20,000 of
// these are cancelled at once. The log writer and an event handler are blocked. It
// reports the medians beside the other calls, and their ratios to the medians alone.
func BenchmarkCallBesideWaitingCalls(b *testing.B) {
	keys, each := 20_000, 5
	if testing.Short() {
		keys = 200
	}
	stuck, gate := make(chan struct{}), make(chan struct{})
	system := actor.NewActorSystem(noLog)
	system.EventStream.Subscribe(func(event any) {
		if _, ours := event.(messages.Event); ours {
			<-stuck
		}
	})
	sup, err := supervisor.Start(system, supervisor.Config{
		Servers: []mcpbridge.Server{{Name: serverName, URL: "http://instant.invalid"}}, Logger: zerolog.New(stuckWriter(stuck)),
		CallTimeout: time.Hour, ConnectTimeout: time.Hour,
		WrapDialer: func(mcpbridge.Dialer) mcpbridge.Dialer { return oneKeyDialer{instantDialer{gate}} },
	})
	require.NoError(b, err)
	client := sup.Client()
	ask := func(cmd messages.Command) time.Duration {
		began := time.Now()
		_, err := client.Do(b.Context(), cmd)
		require.NoError(b, err)
		return time.Since(began)
	}
	call := func() time.Duration { return ask(command("warm")) }
	inspect := func() time.Duration { return ask(&messages.Inspect{Limit: 100}) }
	medians := func(more func(n int) bool) (calls, inspects time.Duration) {
		var all [2][]time.Duration
		for n := 0; more(n); n++ {
			all[0], all[1] = append(all[0], call()), append(all[1], inspect())
		}
		for _, times := range all {
			slices.Sort(times)
		}
		return all[0][len(all[0])/2], all[1][len(all[1])/2]
	}
	thousand := func(n int) bool { return n < 1000 }
	medians(thousand) // warm up

	a := newAgent(system, keys*each)
	wait := func() {
		for i := range keys * each {
			op := command(fmt.Sprint("key-", i%keys))
			op.Head().ID = fmt.Sprint(i / keys)
			system.Root.RequestWithCustomSender(sup.PID(), op, a.pid)
		}
		for snap, _ := client.Inspect(b.Context()); snap.Waiting < keys*each; snap, _ = client.Inspect(b.Context()) {
			time.Sleep(10 * time.Millisecond)
		}
	}
	// 100 sessions that wait, so that both answers are of the same size.
	for i := range 100 {
		op := command(fmt.Sprint("few-", i))
		system.Root.RequestWithCustomSender(sup.PID(), op, actor.NewPID("elsewhere", "nobody"))
	}
	medians(thousand)
	callAlone, inspectAlone := medians(thousand)
	wait()
	for b.Loop() {
		callWaiting, inspectWaiting := medians(thousand)
		for i := range keys {
			system.Root.Send(sup.PID(), &messages.Cancel{Key: messages.Key{Server: serverName, Scope: fmt.Sprint("key-", i)}, ID: "0"})
		}
		callCancelling, inspectCancelling := medians(func(n int) bool { return n == 0 || len(a.replies) < keys })
		for range keys {
			f, _ := (<-a.replies).(*messages.Failure)
			require.ErrorIs(b, f, messages.CodeCancelled)
		}
		for i := range keys {
			op := command(fmt.Sprint("key-", i))
			op.Head().ID = "0"
			system.Root.RequestWithCustomSender(sup.PID(), op, a.pid)
		}
		report := func(name string, beside, alone time.Duration) {
			b.ReportMetric(float64(beside.Nanoseconds()), name+"-ns")
			b.ReportMetric(float64(beside)/float64(alone), name+"-ratio")
		}
		report("call-waiting", callWaiting, callAlone)
		report("inspect-waiting", inspectWaiting, inspectAlone)
		report("call-cancelling", callCancelling, callAlone)
		report("inspect-cancelling", inspectCancelling, inspectAlone)
	}
	close(gate)
	close(stuck)
	for range keys * each {
		<-a.replies
	}
	require.NoError(b, sup.Stop(context.Background()))
}
