package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
	"github.com/mcpactor/mcpactor/messages"
)

// slowClient replies to every command after a second, and records the commands.
type slowClient struct {
	mu      sync.Mutex
	running map[messages.Key]int
	most    int // commands of one key at once
	began   time.Time
	ordered []string // "begin 1", "end 1"
}

func (s *slowClient) Do(ctx context.Context, cmd messages.Command) (messages.Reply, error) {
	key, name := messages.Key{}, fmt.Sprintf("%T", cmd)[len("*messages."):]
	if op, ok := cmd.(*messages.CallTool); ok {
		key, name = op.Key, op.Params.Name
	}
	note := func(what string, by int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.running == nil {
			s.running = map[messages.Key]int{}
		}
		s.running[key] += by
		s.most = max(s.most, s.running[key])
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

// before checks that one record comes before another.
func (s *slowClient) before(t *testing.T, one, other string) {
	t.Helper()
	all := "\n" + strings.Join(s.ordered, "\n") + "\n"
	require.Contains(t, all, "\n"+one+"\n")
	require.Contains(t, all, "\n"+other+"\n")
	require.Less(t, strings.Index(all, "\n"+one+"\n"), strings.Index(all, "\n"+other+"\n"), "%s before %s in%s", one, other, all)
}

// runLines runs lines in fake time, and returns the responses by id.
func runLines(t *testing.T, parallel int, lines string) (responses map[string]map[string]any, s *slowClient, took time.Duration, failed bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s = &slowClient{began: time.Now()}
		failed = newRunner(s, &out, parallel).run(context.Background(), strings.NewReader(lines))
		took = time.Since(s.began)
		responses = map[string]map[string]any{}
		for line := range strings.Lines(out.String()) {
			var a map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &a), line)
			id := fmt.Sprint(a["id"])
			require.NotContains(t, responses, id, "has two responses")
			responses[id] = a
		}
	})
	return responses, s, took, failed
}

// callLine returns a request that calls a tool.
func callLine(id int, scope, tool string) string {
	return fmt.Sprintf(`{"id":"%d","server":"s","scope":"%s","tool":"%s"}`+"\n", id, scope, tool)
}

func TestRequestsOfOneKeyRunInOrderAndThoseOfOthersAtTheSameTime(t *testing.T) {
	lines := callLine(1, "a", "a1") + callLine(2, "a", "a2") + callLine(3, "b", "b1") + callLine(4, "b", "b2") + callLine(5, "", "c1")
	responses, s, took, failed := runLines(t, 1, lines)
	require.False(t, failed)
	require.Len(t, responses, 5)
	require.Equal(t, map[string]any{"id": "1", "ok": true, "generation": 3.0, "replayed": false, "result": nil}, withResult(responses["1"]))
	require.Equal(t, 2*time.Second, took)
	require.Equal(t, 1, s.most)
	s.before(t, "end a1", "begin a2")
	s.before(t, "begin b1", "end a1")
}

// withResult adds a result that is null if there is none.
func withResult(a map[string]any) map[string]any {
	if _, ok := a["result"]; !ok {
		a["result"] = nil
	}
	return a
}

func TestParallelLetsSomeOfOneKeyRunAtOnce(t *testing.T) {
	var lines string
	for i := range 9 {
		lines += callLine(i, "a", fmt.Sprint("t", i))
	}
	_, s, took, _ := runLines(t, 3, lines)
	require.Equal(t, 3, s.most)
	require.Equal(t, 3*time.Second, took)
}

func TestCloseWaitsForEarlierRequestsOfItsKeysAndLaterOnesWaitForIt(t *testing.T) {
	lines := callLine(1, "a", "a1") + callLine(2, "b", "b1") + `{"id":"3","op":"close_scope","scope":"a"}` + "\n" +
		callLine(4, "a", "a2") + callLine(5, "b", "b2") + `{"id":"6","op":"close_all"}` + "\n" + callLine(7, "c", "c1") + callLine(8, "a", "a3")
	responses, s, _, failed := runLines(t, 1, lines)
	require.False(t, failed)
	require.Len(t, responses, 8)
	s.before(t, "end a1", "begin CloseScope")
	s.before(t, "end CloseScope", "begin a2")
	s.before(t, "begin b2", "end CloseScope")
	s.before(t, "end a2", "begin CloseAll")
	s.before(t, "end b2", "begin CloseAll")
	s.before(t, "end CloseAll", "begin c1")
	s.before(t, "end CloseAll", "begin a3")
}

func TestClosesWithoutEarlierRequestsRunAtOnceAndInOrder(t *testing.T) {
	lines := `{"id":"1","op":"close_all"}` + "\n" + `{"id":"2","op":"close_scope","scope":"a"}` + "\n" + callLine(3, "a", "a1") + callLine(4, "b", "b1")
	responses, s, _, _ := runLines(t, 1, lines)
	require.Len(t, responses, 4)
	s.before(t, "end CloseAll", "begin a1")
	s.before(t, "end CloseScope", "begin a1")
	s.before(t, "end CloseAll", "begin b1")
}

func TestCancelAndInspectDoNotWait(t *testing.T) {
	lines := callLine(1, "a", "a1") + callLine(2, "a", "a2") + `{"id":"3","op":"cancel","target":"2"}` + "\n" +
		`{"id":"4","op":"cancel","target":"9"}` + "\n" + `{"id":"5","op":"inspect"}` + "\n" + `{"id":"6","op":"cancel","target":"1"}` + "\n"
	responses, _, took, failed := runLines(t, 1, lines)
	require.True(t, failed)
	require.Zero(t, took)
	require.Equal(t, "cancelled", responses["1"]["code"])
	require.Equal(t, "cancelled", responses["2"]["code"])
	require.Contains(t, responses["2"]["error"], "before it started")
	require.Equal(t, map[string]any{"found": true}, responses["3"]["result"])
	require.Equal(t, map[string]any{"found": false}, responses["4"]["result"])
	require.Equal(t, true, responses["5"]["ok"])
}

// Protocol 2026-07-28 has no ping.
func TestServersOfEachProtocolCanBePinged(t *testing.T) {
	stateless := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return servertest.NewTools("a") }, &mcp.StreamableHTTPOptions{Stateless: true}))
	defer stateless.Close()
	for server, protocol := range map[string]string{
		fmt.Sprintf(`{"url": %q}`, servertest.Serve(t, servertest.NewTools("a"))):    "2025-11-25",
		fmt.Sprintf(`{"url": %q}`, stateless.URL):                                    "2026-07-28",
		fmt.Sprintf(`{"command": %q, "env": {"EXEC_TEST_SERVER": "1"}}`, os.Args[0]): "2026-07-28",
	} {
		config := servertest.File(t, fmt.Sprintf(`{"mcpServers": {"s": %s}}`, server))
		var out, log strings.Builder
		run([]string{"exec", "--config", config}, strings.NewReader(`{"id":"1","server":"s","op":"ping"}`+"\n"+`{"id":"2","server":"s","op":"open"}`), &out, &log)
		require.Contains(t, out.String(), `{"id":"1","ok":true,`, server)
		require.Contains(t, out.String(), fmt.Sprintf(`"protocolVersion":%q`, protocol), server)
	}
}

func TestTimeoutCountsFromTheStart(t *testing.T) {
	responses, _, _, _ := runLines(t, 1, callLine(1, "a", "a1")+`{"id":"2","server":"s","scope":"a","tool":"t","timeout":"500ms"}`+"\n"+
		`{"id":"3","server":"s","scope":"a","tool":"t","timeout":"1500ms"}`)
	require.Equal(t, "deadline", responses["2"]["code"])
	require.Equal(t, true, responses["3"]["ok"])
}

func TestInvalidLinesGetResponsesAndTheOthersRun(t *testing.T) {
	responses, _, _, failed := runLines(t, 1, callLine(1, "a", "t")+"\nnonsense\n"+`{"id":2.5,"server":"s"}`+"\n"+callLine(3, "a", "t"))
	require.True(t, failed)
	require.Contains(t, responses["<nil>"]["error"], "line 3: is not valid JSON")
	require.Contains(t, responses["2.5"]["error"], "line 4: tool: is missing")
	require.Equal(t, true, responses["3"]["ok"])
}

func TestIDOfARequestWithoutResponseIsRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		lines := callLine(1, "a", "t") + callLine(1, "b", "t")
		require.True(t, newRunner(&slowClient{}, &out, 1).run(context.Background(), strings.NewReader(lines)))
		require.Contains(t, out.String(), `"error":"line 2: id: \"1\" is the id of a request that has no response yet"`)
		require.Contains(t, out.String(), `"id":"1","ok":true`)
	})
}

func TestEndOfContextCancelsAllRequestsAndEachGetsAResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		in, feed := io.Pipe()
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(500*time.Millisecond, cancel)
		go io.WriteString(feed, callLine(1, "a", "t")+callLine(2, "a", "t"))
		require.True(t, newRunner(&slowClient{}, &out, 1).run(ctx, in))
		require.Equal(t, 2, strings.Count(out.String(), `"code":"cancelled"`), out.String())
		feed.Close()
	})
}

func TestLineThatIsTooLongIsSkipped(t *testing.T) {
	in := io.MultiReader(io.LimitReader(zeros{}, maxLine+10), strings.NewReader("\n"+callLine(1, "a", "t")))
	var out bytes.Buffer
	require.True(t, newRunner(fastClient{}, &out, 1).run(context.Background(), in))
	require.Contains(t, out.String(), `line 1: has more than`)
	require.Contains(t, out.String(), `"id":"1","ok":true`)
}

// zeros is an endless input.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '0'
	}
	return len(b), nil
}

// fastClient replies to every command at once.
type fastClient struct{}

func (fastClient) Do(context.Context, messages.Command) (messages.Reply, error) {
	return &messages.ToolResult{}, nil
}

func TestOutputThatNobodyReadsEndsTheRun(t *testing.T) {
	in, feed := io.Pipe()
	go io.WriteString(feed, callLine(1, "a", "t"))
	require.True(t, newRunner(fastClient{}, broken{}, 1).run(context.Background(), in))
	feed.Close()
}

// A signal ends the run even if the reader of the output takes nothing.
func TestReaderOfTheOutputThatHangsDoesNotDelayTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines string
		for i := range 3 * maxUnwritten {
			lines += callLine(i, fmt.Sprint("scope-", i), "t")
		}
		in, feed := io.Pipe()
		out, blocked := io.Pipe()
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Minute, cancel)
		go io.WriteString(feed, lines)
		s := &slowClient{}
		began := time.Now()
		require.True(t, newRunner(s, blocked, 1).run(ctx, in))
		require.Equal(t, time.Minute+writeTimeout, time.Since(began))
		require.Equal(t, map[messages.Key]int{}, positive(s.running), "nothing runs")
		feed.Close()
		out.Close()
	})
}

// positive returns the counts that are greater than zero.
func positive(counts map[messages.Key]int) map[messages.Key]int {
	maps.DeleteFunc(counts, func(_ messages.Key, n int) bool { return n == 0 })
	return counts
}

// No response is lost if the reader of the output is slow.
func TestSlowReaderOfTheOutputGetsEveryResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines string
		for i := range 5 * maxUnwritten {
			lines += callLine(i, fmt.Sprint("scope-", i), "t")
		}
		out, blocked := io.Pipe()
		go func() {
			defer blocked.Close()
			newRunner(&slowClient{}, blocked, 1).run(context.Background(), strings.NewReader(lines))
		}()
		time.Sleep(time.Minute) // synctest
		data, err := io.ReadAll(out)
		require.NoError(t, err)
		require.Equal(t, 5*maxUnwritten, strings.Count(string(data), "\n"))
	})
}

// broken is an output that nobody reads.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
