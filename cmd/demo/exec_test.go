package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/messages"
)

func TestMain(m *testing.M) {
	if os.Getenv(journalVar) != "" { // the show's server process is this binary
		os.Exit(run([]string{"serve"}, streams{os.Stdin, os.Stdout, os.Stderr}))
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"))
}

// slowly answers every command after a second, and records what it got.
type slowly struct {
	mu      sync.Mutex
	now     map[messages.Key]int
	most    int // of one key at once
	began   time.Time
	ordered []string // "begin 1", "end 1"
}

func (s *slowly) Do(ctx context.Context, cmd messages.Command) (messages.Reply, error) {
	key, name := messages.Key{}, fmt.Sprintf("%T", cmd)[len("*messages."):]
	if op, ok := cmd.(*messages.CallTool); ok {
		key, name = op.Key, op.Params.Name
	}
	note := func(what string, by int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.now == nil {
			s.now = map[messages.Key]int{}
		}
		s.now[key] += by
		s.most = max(s.most, s.now[key])
		s.ordered = append(s.ordered, what+" "+name)
	}
	note("begin", 1)
	defer note("end", -1)
	if name == "Inspect" {
		return &messages.Snapshot{}, nil
	}
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		code := messages.CodeCancelled
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			code = messages.CodeDeadline
		}
		return nil, &messages.Failure{Code: code}
	}
	if _, ok := cmd.(messages.Operation); !ok {
		return &messages.Closed{Sessions: 1}, nil
	}
	return &messages.ToolResult{Receipt: messages.Receipt{Generation: 3}}, nil
}

// before reports whether one note stands before another.
func (s *slowly) before(t *testing.T, one, other string) {
	t.Helper()
	all := "\n" + strings.Join(s.ordered, "\n") + "\n"
	require.Contains(t, all, "\n"+one+"\n")
	require.Contains(t, all, "\n"+other+"\n")
	require.Less(t, strings.Index(all, "\n"+one+"\n"), strings.Index(all, "\n"+other+"\n"), "%s before %s in%s", one, other, all)
}

// batch runs lines in fake time, and returns the answers by id.
func batch(t *testing.T, parallel int, lines string) (answers map[string]map[string]any, s *slowly, took time.Duration, failed bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s = &slowly{began: time.Now()}
		failed = newRunner(s, &out, parallel).run(context.Background(), strings.NewReader(lines))
		took = time.Since(s.began)
		answers = map[string]map[string]any{}
		for line := range strings.Lines(out.String()) {
			var a map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &a), line)
			id := fmt.Sprint(a["id"])
			require.NotContains(t, answers, id, "answered twice")
			answers[id] = a
		}
	})
	return answers, s, took, failed
}

func request1(id int, scope, tool string) string {
	return fmt.Sprintf(`{"id":"%d","server":"s","scope":"%s","tool":"%s"}`+"\n", id, scope, tool)
}

func TestRequestsOfOneKeyRunInOrderAndThoseOfOthersAtTheSameTime(t *testing.T) {
	lines := request1(1, "a", "a1") + request1(2, "a", "a2") + request1(3, "b", "b1") + request1(4, "b", "b2") + request1(5, "", "c1")
	answers, s, took, failed := batch(t, 1, lines)
	require.False(t, failed)
	require.Len(t, answers, 5)
	require.Equal(t, map[string]any{"id": "1", "ok": true, "generation": 3.0, "replayed": false, "result": nil}, withResult(answers["1"]))
	require.Equal(t, 2*time.Second, took)
	require.Equal(t, 1, s.most)
	s.before(t, "end a1", "begin a2")
	s.before(t, "begin b1", "end a1")
}

// withResult fills in a result that is null.
func withResult(a map[string]any) map[string]any {
	if _, ok := a["result"]; !ok {
		a["result"] = nil
	}
	return a
}

func TestParallelLetsSomeOfOneKeyRunAtOnce(t *testing.T) {
	var lines string
	for i := range 9 {
		lines += request1(i, "a", fmt.Sprint("t", i))
	}
	_, s, took, _ := batch(t, 3, lines)
	require.Equal(t, 3, s.most)
	require.Equal(t, 3*time.Second, took)
}

func TestCloseWaitsForEarlierRequestsOfItsKeysAndLaterOnesWaitForIt(t *testing.T) {
	lines := request1(1, "a", "a1") + request1(2, "b", "b1") + `{"id":"3","op":"close_scope","scope":"a"}` + "\n" +
		request1(4, "a", "a2") + request1(5, "b", "b2") + `{"id":"6","op":"close_all"}` + "\n" + request1(7, "c", "c1") + request1(8, "a", "a3")
	answers, s, _, failed := batch(t, 1, lines)
	require.False(t, failed)
	require.Len(t, answers, 8)
	s.before(t, "end a1", "begin CloseScope")
	s.before(t, "end CloseScope", "begin a2")
	s.before(t, "begin b2", "end CloseScope")
	s.before(t, "end a2", "begin CloseAll")
	s.before(t, "end b2", "begin CloseAll")
	s.before(t, "end CloseAll", "begin c1")
	s.before(t, "end CloseAll", "begin a3")
}

func TestClosesWithoutEarlierRequestsRunAtOnceAndInOrder(t *testing.T) {
	lines := `{"id":"1","op":"close_all"}` + "\n" + `{"id":"2","op":"close_scope","scope":"a"}` + "\n" + request1(3, "a", "a1") + request1(4, "b", "b1")
	answers, s, _, _ := batch(t, 1, lines)
	require.Len(t, answers, 4)
	s.before(t, "end CloseAll", "begin a1")
	s.before(t, "end CloseScope", "begin a1")
	s.before(t, "end CloseAll", "begin b1")
}

func TestCancelAndInspectDoNotWait(t *testing.T) {
	lines := request1(1, "a", "a1") + request1(2, "a", "a2") + `{"id":"3","op":"cancel","target":"2"}` + "\n" +
		`{"id":"4","op":"cancel","target":"9"}` + "\n" + `{"id":"5","op":"inspect"}` + "\n" + `{"id":"6","op":"cancel","target":"1"}` + "\n"
	answers, _, took, failed := batch(t, 1, lines)
	require.True(t, failed)
	require.Zero(t, took)
	require.Equal(t, "cancelled", answers["1"]["code"])
	require.Equal(t, "cancelled", answers["2"]["code"])
	require.Contains(t, answers["2"]["error"], "before it was started")
	require.Equal(t, map[string]any{"found": true}, answers["3"]["result"])
	require.Equal(t, map[string]any{"found": false}, answers["4"]["result"])
	require.Equal(t, true, answers["5"]["ok"])
}

func TestTimeoutCountsFromTheStart(t *testing.T) {
	answers, _, _, _ := batch(t, 1, request1(1, "a", "a1")+`{"id":"2","server":"s","scope":"a","tool":"t","timeout":"500ms"}`+"\n"+
		`{"id":"3","server":"s","scope":"a","tool":"t","timeout":"1500ms"}`)
	require.Equal(t, "deadline", answers["2"]["code"])
	require.Equal(t, true, answers["3"]["ok"])
}

func TestWrongLinesAreAnsweredAndTheOthersGoOn(t *testing.T) {
	answers, _, _, failed := batch(t, 1, request1(1, "a", "t")+"\nnonsense\n"+`{"id":2.5,"server":"s"}`+"\n"+request1(3, "a", "t"))
	require.True(t, failed)
	require.Contains(t, answers["<nil>"]["error"], "line 3: is no JSON")
	require.Contains(t, answers["2.5"]["error"], "line 4: tool: is missing")
	require.Equal(t, true, answers["3"]["ok"])
}

func TestIDThatIsTakenIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		lines := request1(1, "a", "t") + request1(1, "b", "t")
		require.True(t, newRunner(&slowly{}, &out, 1).run(context.Background(), strings.NewReader(lines)))
		require.Contains(t, out.String(), `"error":"line 2: id: \"1\" is that of a request that is not answered yet"`)
		require.Contains(t, out.String(), `"id":"1","ok":true`)
	})
}

func TestEndOfContextCancelsWhatRunsAndAnswersAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		in, feed := io.Pipe()
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(500*time.Millisecond, cancel)
		go io.WriteString(feed, request1(1, "a", "t")+request1(2, "a", "t"))
		require.True(t, newRunner(&slowly{}, &out, 1).run(ctx, in))
		require.Equal(t, 2, strings.Count(out.String(), `"code":"cancelled"`), out.String())
		feed.Close()
	})
}

func TestLineThatIsTooLongIsSkipped(t *testing.T) {
	in := io.MultiReader(io.LimitReader(zeros{}, maxLine+10), strings.NewReader("\n"+request1(1, "a", "t")))
	var out bytes.Buffer
	require.True(t, newRunner(quickly{}, &out, 1).run(context.Background(), in))
	require.Contains(t, out.String(), `line 1: has more than`)
	require.Contains(t, out.String(), `"id":"1","ok":true`)
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '0'
	}
	return len(b), nil
}

type quickly struct{}

func (quickly) Do(context.Context, messages.Command) (messages.Reply, error) {
	return &messages.ToolResult{}, nil
}

func TestOutputThatNobodyReadsEndsTheRun(t *testing.T) {
	in, feed := io.Pipe()
	go io.WriteString(feed, request1(1, "a", "t"))
	require.True(t, newRunner(quickly{}, broken{}, 1).run(context.Background(), in))
	feed.Close()
}

// A signal ends the run also when the reader of the output takes nothing.
func TestOutputThatIsNotTakenDoesNotHoldUpTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines string
		for i := range 3 * maxUnwritten {
			lines += request1(i, fmt.Sprint("scope-", i), "t")
		}
		in, feed := io.Pipe()
		out, blocked := io.Pipe()
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Minute, cancel)
		go io.WriteString(feed, lines)
		s := &slowly{}
		began := time.Now()
		require.True(t, newRunner(s, blocked, 1).run(ctx, in))
		require.Equal(t, time.Minute+lastWrite, time.Since(began))
		require.Equal(t, map[messages.Key]int{}, positive(s.now), "nothing runs")
		feed.Close()
		out.Close()
	})
}

// positive returns what is above zero.
func positive(counts map[messages.Key]int) map[messages.Key]int {
	maps.DeleteFunc(counts, func(_ messages.Key, n int) bool { return n == 0 })
	return counts
}

// Answers wait for a reader that takes its time, and none is lost.
func TestSlowReaderOfTheOutputGetsEveryAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines string
		for i := range 5 * maxUnwritten {
			lines += request1(i, fmt.Sprint("scope-", i), "t")
		}
		out, blocked := io.Pipe()
		go func() {
			defer blocked.Close()
			newRunner(&slowly{}, blocked, 1).run(context.Background(), strings.NewReader(lines))
		}()
		time.Sleep(time.Minute) // synctest
		data, err := io.ReadAll(out)
		require.NoError(t, err)
		require.Equal(t, 5*maxUnwritten, strings.Count(string(data), "\n"))
	})
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestWrongUsageExitsWithTwo(t *testing.T) {
	empty := t.TempDir() + "/empty.json"
	require.NoError(t, os.WriteFile(empty, []byte(`{"mcpServers": {"a": {}}}`), 0o600))
	for want, args := range map[string][]string{
		"missing flags: --config=FILE":              {"exec"},
		"no such file":                              {"exec", "--config", "/no/such/file"},
		"mcpServers.a: command: is empty":           {"exec", "--config", empty},
		"--parallel: 0 is less than 1":              {"exec", "--config", empty, "--parallel", "0"},
		"unknown flag --nonsense":                   {"--nonsense"},
		"--agents: 1 is not from 3":                 {"--agents", "1"},
		"--duration: 1ms is not from 1s":            {"--duration", "1ms"},
		"serve is started by the show":              {"serve"},
		"--timeout: 0s is not above 0":              {"tools", "--config", empty, "--timeout", "0s"},
		"--scope: has a control character":          {"tools", "--config", empty, "--scope", "a\n"},
		`--log-level must be one of "debug","info"`: {"exec", "--config", empty, "--log-level", "loud"},
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, exitUsage, run(args, streams{strings.NewReader(""), &stdout, &stderr}), want)
		require.Contains(t, stderr.String(), want)
		require.Empty(t, stdout.String(), want)
	}
}

func TestHelpExplainsEveryFlag(t *testing.T) {
	var stdout bytes.Buffer
	require.Equal(t, exitOK, run([]string{"--help"}, streams{nil, &stdout, io.Discard}))
	for _, flag := range []string{"--config", "--parallel", "--log-level", "--stop-timeout", "--events", "--scope", "--json", "--timeout", "--duration", "--agents", "--max-sessions", "--seed", "--plain"} {
		require.Contains(t, stdout.String(), flag)
	}
}
