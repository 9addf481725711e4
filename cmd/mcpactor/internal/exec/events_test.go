package exec

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

// eventTypes returns the names of the types of all events: the structs that embed Stamp.
func eventTypes(t *testing.T) (names []string) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../../../messages/event.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		structure, ok := spec.Type.(*ast.StructType)
		if !ok {
			return false
		}
		for _, field := range structure.Fields.List {
			if ident, ok := field.Type.(*ast.Ident); ok && len(field.Names) == 0 && ident.Name == "Stamp" {
				names = append(names, spec.Name.Name)
			}
		}
		return false
	})
	require.NotEmpty(t, names)
	return names
}

func TestLineOfADefinitionSaysWhatChanged(t *testing.T) {
	line, err := json.Marshal(lineOf(&toolset.DefinitionChanged{
		Stamp: messages.Stamp{Key: messages.Key{Server: "s", Scope: "a"}, Generation: 2}, Tool: "read",
		Change: toolset.ToolRedefined, Fields: []string{"description"}, After: &toolset.Tool{Description: "d"},
	}))
	require.NoError(t, err)
	require.JSONEq(t, `{"event":"definition_changed","server":"s","scope":"a","generation":2,"tool":"read","change":"redefined","fields":["description"]}`, string(line))
}

func TestEveryEventHasALineWithAllOfItsFields(t *testing.T) {
	at := time.Date(2026, 8, 1, 12, 0, 0, 5, time.UTC)
	stamp := messages.Stamp{Key: messages.Key{Server: "s", Scope: "a"}, Generation: 2, Time: at}
	meta, of := mcp.Meta{"k": "v"}, messages.OperationRef{ID: "x", Method: "tools/call", Target: "t"}
	var covered []string
	for _, c := range []struct {
		event messages.Event
		want  string // after the stamp
	}{
		{&messages.SessionOpened{Stamp: stamp, Attached: true, Protocol: "2025-11-25", Elapsed: 1500 * time.Millisecond}, `"attached":true,"protocol":"2025-11-25","elapsed":"1.5s"`},
		{&messages.SessionExpired{Stamp: stamp, Cause: "c"}, `"cause":"c"`},
		{&messages.SessionLost{Stamp: stamp, Cause: "c"}, `"cause":"c"`},
		{&messages.SessionRestarting{Stamp: stamp, Attempt: 3, Delay: time.Second, Cause: "c"}, `"attempt":3,"delay":"1s","cause":"c"`},
		{&messages.SessionRestarted{Stamp: stamp, Attached: true, Protocol: "2025-11-25", Elapsed: time.Second, Lifetime: time.Minute}, `"attached":true,"protocol":"2025-11-25","elapsed":"1s","lifetime":"1m0s"`},
		{&messages.SessionGaveUp{Stamp: stamp, Cause: "c", RetryAt: at.Add(time.Minute)}, `"cause":"c","retryAt":"2026-08-01T12:01:00.000000005Z"`},
		{&messages.SessionEvicted{Stamp: stamp, Reason: messages.EvictCap}, `"reason":"cap"`},
		{&messages.SessionClosed{Stamp: stamp, Cause: "c", Lifetime: time.Minute}, `"lifetime":"1m0s","cause":"c"`},
		{&messages.HandleMinted{Stamp: stamp, Mint: "open"}, `"mint":"open"`},
		{&messages.HandleReleased{Stamp: stamp, Mint: "open", Gone: true}, `"mint":"open","gone":true`},
		{&messages.HandleLost{Stamp: stamp, Mint: "open", Cause: "c"}, `"cause":"c","mint":"open"`},
		{&messages.HandleLeft{Stamp: stamp, Mint: "open", Reason: "r"}, `"reason":"r","mint":"open"`},
		{&messages.CallReplayed{Stamp: stamp, ID: "x", Method: "tools/call", Target: "t", Attempt: 2}, `"attempt":2,"method":"tools/call","target":"t"`},
		{&messages.TaskChanged{Stamp: stamp, Operation: of, Status: "working", Message: "m"}, `"operation":{"id":"x","method":"tools/call","target":"t"},"status":"working","message":"m"`},
		{&messages.CatalogueChanged{Stamp: stamp, Method: "tools/list"}, `"method":"tools/list"`},
		{&messages.OwnerTerminated{Stamp: stamp, Owner: "o", Scopes: []string{"a"}, Cancelled: 2}, `"owner":"o","scopes":["a"],"cancelled":2`},
		{&messages.ToolsChanged{Stamp: stamp}, ``},
		{&messages.PromptsChanged{Stamp: stamp}, ``},
		{&messages.ResourcesChanged{Stamp: stamp}, ``},
		{&messages.ResourceUpdated{Stamp: stamp, URI: "u", Meta: meta}, `"uri":"u","meta":{"k":"v"}`},
		{&messages.ServerLog{Stamp: stamp, Level: "info", Logger: "l", Data: map[string]any{"k": "v\n"}, Operation: of, Meta: meta}, `"level":"info","logger":"l","data":{"k":"v\n"},"operation":{"id":"x","method":"tools/call","target":"t"},"meta":{"k":"v"}`},
		{&messages.ElicitationCompleted{Stamp: stamp, ElicitationID: "e", Meta: meta}, `"elicitationId":"e","meta":{"k":"v"}`},
		{&messages.CustomNotification{Stamp: stamp, Method: "acme/x", Params: json.RawMessage(`{ "k": "v\n" }`)}, `"method":"acme/x","params":{"k":"v\n"}`},
		{&messages.Progress{Stamp: stamp, ID: "x", Progress: 0.5, Total: 2, Message: "m", Meta: meta}, `"meta":{"k":"v"},"progress":0.5,"total":2,"message":"m"`},
	} {
		value := reflect.ValueOf(c.event).Elem()
		name := value.Type().Name()
		covered = append(covered, name)
		for i := range value.NumField() {
			field := value.Type().Field(i)
			unused := field.Name == "AsSent" // it is for gateways
			require.False(t, field.IsExported() && !unused && value.Field(i).IsZero(), "%s.%s is not in this test", name, field.Name)
		}
		line, err := json.Marshal(lineOf(c.event))
		require.NoError(t, err)
		want := fmt.Sprintf(`{"event":%q,"server":"s","scope":"a","generation":2,"time":"2026-08-01T12:00:00.000000005Z"`, c.event.EventName())
		if c.want != "" {
			want += "," + c.want
		}
		require.Equal(t, want+"}", string(line))
	}
	require.ElementsMatch(t, append(eventTypes(t), "CustomNotification"), covered)
}

func TestZeroFieldsArePrintedIfZeroIsMeaningful(t *testing.T) {
	for want, event := range map[string]messages.Event{
		`{"event":"session_opened","attached":false,"elapsed":"0s"}`:                    &messages.SessionOpened{},
		`{"event":"session_restarting","delay":"0s"}`:                                   &messages.SessionRestarting{},
		`{"event":"progress","progress":0}`:                                             &messages.Progress{},
		`{"event":"server_log","level":"info","data":false}`:                            &messages.ServerLog{Level: "info", Data: false},
		`{"event":"session_restarted","attached":false,"elapsed":"0s","lifetime":"0s"}`: &messages.SessionRestarted{},
		`{"event":"session_gave_up","cause":"connection refused"}`:                      &messages.SessionGaveUp{Cause: "connection refused"},
		`{"event":"resource_updated","uri":"file:///a\u001b[31m\u2028"}`:                &messages.ResourceUpdated{URI: "file:///a\x1b[31m\u2028"},
	} {
		line, err := json.Marshal(lineOf(event))
		require.NoError(t, err)
		require.Equal(t, want, string(line))
	}
}

// The queue is bounded, and publishing does not block.
func TestEventsThatNobodyReadsAreDroppedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 5 * maxEvents
		out, blocked := io.Pipe()
		r := newRunner(&slowClient{}, blocked, 1)
		r.close = func() {
			for i := range all {
				r.events.publish(&messages.ResourceUpdated{URI: fmt.Sprint(i)})
				if i%10 == 0 && i < maxUnwritten {
					synctest.Wait() // some events are taken from the queue
				}
			}
		}
		go func() {
			defer blocked.Close()
			r.run(context.Background(), strings.NewReader(callLine(1, "a", "t")))
		}()
		time.Sleep(time.Minute) // synctest
		text, err := io.ReadAll(out)
		require.NoError(t, err)
		lines := decoded(t, string(text))
		require.Equal(t, "1", lines[0]["id"])
		printed, dropped := 0, 0
		for _, line := range lines[1:] {
			if line["event"] == "dropped" {
				dropped += int(line["count"].(float64))
				continue
			}
			require.Equal(t, "resource_updated", line["event"])
			require.Equal(t, fmt.Sprint(printed+dropped), line["uri"], "events are in order, and the line dropped stands where they are missing")
			printed++
		}
		require.Equal(t, all, printed+dropped)
		require.GreaterOrEqual(t, printed, maxEvents)
		require.LessOrEqual(t, printed, 2*maxEvents+maxUnwritten, "the events in the queue, and those that were taken last")
	})
}

func TestDataThatIsNotValidJSONIsOmitted(t *testing.T) {
	var out strings.Builder
	r := newRunner(fastClient{}, &out, 1)
	r.events.publish(&messages.ServerLog{Level: "info", Data: make(chan int)})
	r.run(context.Background(), strings.NewReader(""))
	require.Equal(t, `{"event":"server_log","level":"info"}`+"\n", out.String())
}

func TestProgressIsPrintedBeforeTheResponse(t *testing.T) {
	inMemory(t, map[string]*mcp.Server{"s": servertest.NewTools("work")}, func(t *testing.T, i *inputs.Instance, tools *toolsets) {
		lines := responsesTo(t, i, tools, 1, `{"id":"1","server":"s","tool":"work","progress":true}`+"\n"+
			`{"id":"2","name":"s__work","progress":true}`+"\n"+`{"id":"3","name":"s__work"}`)
		require.Equal(t, []string{"progress", "progress", "progress", "1", "progress", "progress", "progress", "2", "3"}, sequence(lines))
		require.Equal(t, "2", lines[4]["id"])
		require.Equal(t, "at it", lines[6]["message"])
		require.Equal(t, 2.0, lines[6]["progress"])
		require.Equal(t, 3.0, lines[6]["total"])
	})
}

func TestEventsArePrintedBetweenTheResponsesUntilAllSessionsAreClosed(t *testing.T) {
	config := servertest.File(t, fmt.Sprintf(`{"mcpServers": {"s": {"url": %q}}}`, servertest.Serve(t, servertest.NewTools("a"))))
	requests := `{"id":"1","server":"s","tool":"a"}` + "\n" + `{"id":"2","op":"close_all"}` + "\n" + `{"id":"3","server":"s","tool":"a"}`
	for _, c := range []struct {
		flags  []string
		events []string
	}{
		{nil, []string{}},
		{[]string{"--events"}, []string{"session_opened", "session_closed", "session_opened", "session_closed"}},
	} {
		var out, log strings.Builder
		args := append([]string{"exec", "--config", config}, c.flags...)
		require.Equal(t, cli.ExitOK, run(args, strings.NewReader(requests), &out, &log), log.String())
		lines := sequence(decoded(t, out.String()))
		isResponse := func(name string) bool { return len(name) == 1 }
		require.Equal(t, c.events, slices.DeleteFunc(slices.Clone(lines), isResponse))
		require.Equal(t, []string{"1", "2", "3"}, slices.DeleteFunc(lines, func(name string) bool { return !isResponse(name) }))
	}
}
