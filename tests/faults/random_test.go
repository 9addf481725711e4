package faults_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// asker is an actor that sends all of its calls at once, and keeps the replies.
type asker struct {
	sessions *actor.PID
	calls    []*messages.CallTool
	mu       sync.Mutex
	replies  map[string][]messages.Reply // by the id of the call
}

func (a *asker) Receive(c actor.Context) {
	switch msg := c.Message().(type) {
	case *actor.Started:
		for _, call := range a.calls {
			c.Request(a.sessions, call)
		}
	case messages.Reply:
		a.mu.Lock()
		defer a.mu.Unlock()
		a.replies[msg.RequestID()] = append(a.replies[msg.RequestID()], msg)
	}
}

// askAll makes calls under faults: from 5 scopes, 10 of a tool that is read-only, and 10 of
// another one. It returns the actor, whose calls are all answered by then, and the script.
func askAll(t *testing.T, random faults.Random) (*asker, *faults.Script) {
	script := faults.NewScript(t, "s")
	script.Tool("write").Returns("written")
	script.Define(&mcp.Tool{Name: "read", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}).Returns("read")
	stop := script.FailsAtRandom(random)
	system := actor.NewActorSystem(supervisor.WithSystemLogger(zerolog.Nop()))
	sup := script.Supervise(system, supervisor.Config{})
	agent := &asker{sessions: sup.PID(), replies: map[string][]messages.Reply{}}
	for i := range 100 {
		header := messages.To("s", fmt.Sprint("scope-", i%5))
		header.ID = fmt.Sprint(i)
		params := &mcp.CallToolParams{Name: []string{"read", "write"}[i/5%2], Arguments: map[string]any{"call": header.ID, "scope": header.Key.Scope}}
		agent.calls = append(agent.calls, &messages.CallTool{Header: header, Params: params})
	}
	system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return agent }))
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	stop()
	for i := range 5 {
		result, err := sup.Client().CallTool(t.Context(), "s", fmt.Sprint("scope-", i), &mcp.CallToolParams{Name: "write"})
		require.NoError(t, err)
		require.False(t, result.Result.IsError)
	}
	return agent, script
}

// What the supervisor promises holds under all faults: each call has one reply, the replies
// are true about what has run, only what is read-only runs again, and no scope has two
// sessions at once.
func TestPromisesHoldUnderRandomFaults(t *testing.T) {
	met := map[faults.Name]int{}
	for seed := range seeds(50, 10) {
		synctest.Test(t, func(t *testing.T) {
			agent, script := askAll(t, faults.Random{Seed: seed, Share: 0.3})
			require.Empty(t, script.Overlaps())
			ran := map[any]int{}
			for _, call := range script.Calls() {
				met[call.Fault]++
				if call.Ran {
					ran[call.Arguments["call"]]++
				}
			}
			for _, call := range agent.calls {
				replies := agent.replies[call.ID]
				require.Len(t, replies, 1, call.ID)
				limit := 1
				switch reply := replies[0].(type) {
				case *messages.ToolResult:
					if !reply.Result.IsError {
						require.Positive(t, ran[call.ID], call.ID)
					}
					if reply.Replayed && call.Params.Name == "read" {
						limit = 2
					}
				case *messages.Failure:
					switch {
					case !reply.MayHaveRun:
						limit = 0
					case reply.Replayed && call.Params.Name == "read":
						limit = 2
					}
				}
				require.LessOrEqual(t, ran[call.ID], limit, call.ID)
			}
		})
	}
	for _, name := range faults.Names() {
		require.True(t, met[name] > 0 || testing.Short(), name)
	}
}

// faultsOf returns the faults of each call, in the order in which it was sent.
func faultsOf(t *testing.T, random faults.Random) map[string][]faults.Name {
	met := map[string][]faults.Name{}
	synctest.Test(t, func(t *testing.T) {
		_, script := askAll(t, random)
		for _, call := range script.Calls() {
			if id, ours := call.Arguments["call"].(string); ours {
				met[id] = append(met[id], call.Fault)
			}
		}
	})
	return met
}

func TestOneSeedChoosesTheSameFaults(t *testing.T) {
	// These end no session, so that each run sends the same calls.
	random := faults.Random{Seed: 1, Faults: []faults.Name{faults.LostAfterRun, faults.ServerError, faults.Slow, faults.ToolError}}
	first := faultsOf(t, random)
	require.Equal(t, first, faultsOf(t, random))
	random.Seed = 2
	require.NotEqual(t, first, faultsOf(t, random))
}

// A run may send a call more often than another run. What it meets is the same up to there.
func TestOneSeedChoosesTheSameFaultsWhateverTheOrderOfCalls(t *testing.T) {
	sent, tried := 0, seeds(20, 4)
	for seed := range tried {
		first, second := faultsOf(t, faults.Random{Seed: seed}), faultsOf(t, faults.Random{Seed: seed})
		for id, met := range first {
			for n := range min(len(met), len(second[id])) {
				require.Equal(t, met[n], second[id][n], id)
				sent++
			}
		}
	}
	require.Greater(t, sent, 40*int(tried))
}

func TestRandomFaultsAreLimited(t *testing.T) {
	scripted(t, supervisor.Config{}, func(t *testing.T, script *faults.Script, sup *supervisor.Supervisor) {
		script.Tool("buy").Returns("one").Returns("two")
		only := []faults.Name{faults.RateLimited}
		stop := script.FailsAtRandom(faults.Random{Share: 1, Faults: only, Limit: 2})
		for range 2 {
			require.Equal(t, messages.CodeRateLimited, askFailure(t, sup, "buy").Code)
			time.Sleep(time.Second)
		}
		require.Equal(t, "one", askText(t, sup, "a", "buy", nil))
		require.Equal(t, "two", askText(t, sup, "a", "buy", nil))
		stop()

		stop = script.FailsAtRandom(faults.Random{Share: 1, Faults: only})
		require.Equal(t, messages.CodeRateLimited, askFailure(t, sup, "buy").Code)
		time.Sleep(time.Second)
		stop()
		require.Equal(t, "two", askText(t, sup, "a", "buy", nil))
	})
}

// loggedTest is a test that has failed.
type loggedTest struct {
	*testing.T
	log string
}

func (*loggedTest) Failed() bool        { return true }
func (l *loggedTest) Log(values ...any) { l.log += fmt.Sprint(values...) }

func TestTestThatFailsLogsItsSeedAndItsFaults(t *testing.T) {
	logged := &loggedTest{}
	synctest.Test(t, func(t *testing.T) {
		logged.T = t
		script := faults.NewScript(logged, "s")
		script.Tool("buy").Returns("bought")
		sup := script.Supervise(actor.NewActorSystem(), supervisor.Config{})
		ask(t, sup, "a", "buy", map[string]any{"title": "Emma"})
		time.Sleep(time.Second)
		script.FailsAtRandom(faults.Random{Seed: 17, Share: 1, Faults: []faults.Name{faults.ToolError}})
		ask(t, sup, "a", "buy", map[string]any{"title": "Dune"})
	})
	require.Regexp(t, `^faults: script "s" with seed 17, expiry in the form ".+":\n +1s a: buy {"title":"Dune"}: tool error\n`+
		`run it again, in the folder of the test: go test -run '\^TestTestThatFailsLogsItsSeedAndItsFaults\$' -count=1$`, logged.log)

	failed := &failedTest{T: t}
	faults.NewScript(failed, "s").FailsAtRandom(faults.Random{Faults: []faults.Name{"nonsense"}})
	require.Contains(t, failed.failed, `no fault has the name "nonsense"`)
}
