package messages

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write testdata/messages.json")

// recorded are the messages that programs keep and print: events, results, failures and
// snapshots. Results that have a receipt and a field Result are as ToolResult is.
var recorded = []any{
	&SessionOpened{},
	&SessionExpired{},
	&SessionLost{},
	&SessionRestarting{},
	&SessionRestarted{},
	&SessionGaveUp{},
	&SessionEvicted{},
	&SessionClosed{},
	&CallReplayed{},
	&TaskChanged{},
	&HandleMinted{},
	&HandleReleased{},
	&HandleLost{},
	&HandleLeft{},
	&OwnerTerminated{},
	&CatalogueChanged{},
	&ToolsChanged{},
	&PromptsChanged{},
	&ResourcesChanged{},
	&ResourceUpdated{},
	&ServerLog{},
	&ElicitationCompleted{},
	&CustomNotification{},
	&Progress{},

	&ToolResult{},
	&ToolList{},
	&SessionInfo{},

	&Failure{},
	&Closed{},
	&Bound{},
	&Pinned{},
	&Status{},
	&Done{},
	&Snapshot{},
}

// declared returns the names of the types of this package that embed one of these.
func declared(t *testing.T, embedded ...string) (names []string) {
	t.Helper()
	packages, err := parser.ParseDir(token.NewFileSet(), ".", func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0) //nolint:staticcheck // build tags do not matter
	require.NoError(t, err)
	for _, file := range packages["messages"].Files {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					if id, ok := field.Type.(*ast.Ident); ok && len(field.Names) == 0 && slices.Contains(embedded, id.Name) {
						names = append(names, spec.Name.Name)
					}
				}
			}
			return true
		})
	}
	return names
}

// fill sets the exported fields of a struct to values that are not zero.
func fill(t *testing.T, v reflect.Value, name string) {
	t.Helper()
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 7, 28, 12, 0, 0, 5e8, time.UTC)))
		return
	case v.Type() == reflect.TypeFor[time.Duration]():
		v.SetInt(int64(1500 * time.Millisecond))
		return
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`{"any":"data"}`))
		return
	case v.Type() == reflect.TypeFor[error](), v.Kind() == reflect.Pointer: // the types of the SDK have their own JSON
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.ToLower(name))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(2)
	case reflect.Uint64:
		v.SetUint(3)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Interface:
		v.Set(reflect.ValueOf(map[string]any{"any": "data"}))
	case reflect.Slice:
		one := reflect.New(v.Type().Elem()).Elem()
		fill(t, one, name)
		v.Set(reflect.Append(v, one))
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), name)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, name)
		fill(t, value, name)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if field.IsExported() {
				requireTag(t, v.Type(), field)
				fill(t, v.Field(i), field.Name)
			}
		}
	default:
		t.Fatalf("%s is a %v: teach the test about it", name, v.Type())
	}
}

var lowerCamel = regexp.MustCompile(`^[a-z][a-zA-Z]*$`)

// requireTag requires that a field has a JSON name in lower camel case.
func requireTag(t *testing.T, of reflect.Type, field reflect.StructField) {
	t.Helper()
	tag, tagged := field.Tag.Lookup("json")
	if field.Anonymous && !tagged || tag == "-" {
		return
	}
	name, _, _ := strings.Cut(tag, ",")
	require.Regexp(t, lowerCamel, name, "%v.%s has no JSON name", of, field.Name)
}

// The JSON of what programs keep does not change by accident: an event that is new, or has
// a new field, needs tags, and is added to testdata with go test -update.
func TestJSONOfMessagesIsStable(t *testing.T) {
	var names []string
	var golden bytes.Buffer
	for _, msg := range recorded {
		v := reflect.ValueOf(msg).Elem()
		names = append(names, v.Type().Name())
		fill(t, v, v.Type().Name())
		data, err := json.Marshal(msg)
		require.NoError(t, err)
		byValue, err := json.Marshal(v.Interface())
		require.NoError(t, err)
		require.JSONEq(t, string(data), string(byValue), "%T", msg)
		fmt.Fprintf(&golden, "%s %s\n", v.Type().Name(), data)

		back := reflect.New(v.Type())
		require.NoError(t, json.Unmarshal(data, back.Interface()))
		again, err := json.Marshal(back.Interface())
		require.NoError(t, err)
		require.JSONEq(t, string(data), string(again), "%T", msg)

		for i := range v.NumField() {
			if field := v.Type().Field(i); field.Type == reflect.TypeFor[time.Duration]() {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				require.Contains(t, string(data), fmt.Sprintf("%q:%q", name, "1.5s"), "%T needs the methods of json.go", msg)
			}
		}
	}
	for _, result := range []Result{
		new(Ack), new(Completion), new(CustomResult), new(Prompt), new(PromptList), new(ResourceContents), new(ResourceList), new(ResourceTemplateList),
	} { // which have no other fields than those of ToolList
		of := reflect.TypeOf(result).Elem()
		for i := range of.NumField() {
			field, is := reflect.TypeFor[ToolList]().FieldByName(of.Field(i).Name)
			require.True(t, is && field.Tag == of.Field(i).Tag, of.Name())
		}
		names = append(names, of.Name())
	}
	for _, name := range declared(t, "Stamp", "Receipt") {
		require.Contains(t, names, name, "add it to the list recorded")
	}
	const file = "testdata/messages.txt"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, golden.Bytes(), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), golden.String())
}

func TestDurationsAreReadAsStrings(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`{"retryAfter":"1.5s"}`: 1500 * time.Millisecond, `{}`: 0, `{"retryAfter":null}`: 0,
	} {
		var f Failure
		require.NoError(t, json.Unmarshal([]byte(text), &f), text)
		require.Equal(t, want, f.RetryAfter, text)
	}
	require.ErrorContains(t, json.Unmarshal([]byte(`{"elapsed":1500000000}`), &SessionOpened{}), `a duration is a string such as "1.5s"`)
	require.Error(t, json.Unmarshal([]byte(`{"elapsed":"soon"}`), &SessionOpened{}))
}

// Events and failures have a value for log/slog with what happened, and without what a server
// says in its own words.
func TestEventsAndFailuresHaveALogValue(t *testing.T) {
	for _, msg := range recorded {
		v := reflect.ValueOf(msg).Elem()
		fill(t, v, v.Type().Name())
		valuer, ok := msg.(slog.LogValuer)
		_, isEvent := msg.(Event)
		if _, isFailure := msg.(*Failure); !isEvent && !isFailure {
			continue
		}
		require.True(t, ok, "%T", msg)
		var log strings.Builder
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "value", msg)
		value := valuer.LogValue()
		require.Equal(t, slog.KindGroup, value.Kind(), "%T", msg)
		var names []string
		for _, attr := range value.Group() {
			names = append(names, attr.Key)
			require.Regexp(t, lowerCamel, attr.Key)
		}
		require.Contains(t, names, "key")
		if isEvent {
			require.Contains(t, names, "event", "%T", msg)
			require.Contains(t, log.String(), fmt.Sprintf(`"event":%q`, snake(v.Type().Name())))
		}
		for i := range v.NumField() {
			field := v.Type().Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if hidden := slices.Contains([]string{"data", "elicitationId", "logger", "message", "meta", "params", "verbatim"}, name); field.Anonymous || name == "-" || hidden {
				require.NotContains(t, names, name)
				continue
			}
			require.Contains(t, names, name, "%T", msg)
		}
		if strings.Contains(log.String(), `"elapsed"`) || strings.Contains(log.String(), `"delay"`) || strings.Contains(log.String(), `"retryAfter"`) {
			require.Contains(t, log.String(), `"1.5s"`)
		}
	}
	secret := &ResourceUpdated{URI: "https://user:pw@h/x?token=s3cr3t#f"}
	require.Equal(t, "https://h/x", secret.LogValue().Group()[3].Value.String())
	require.NotContains(t, (&SessionLost{Cause: "a\nlevel=error"}).LogValue().String(), "\n")
}

var humps = regexp.MustCompile(`[a-z][A-Z]`)

// An event can be printed: its text has its name, its key and what happened, on one line, and
// nothing that a server says in its own words.
func TestEventsPrintTheirNameAndWhatHappened(t *testing.T) {
	for _, msg := range recorded {
		e, isEvent := msg.(Event)
		if !isEvent {
			continue
		}
		v := reflect.ValueOf(msg).Elem()
		fill(t, v, v.Type().Name())
		require.Equal(t, snake(v.Type().Name()), e.EventName())
		text := fmt.Sprint(e)
		require.True(t, strings.HasPrefix(text, e.EventName()+" server/scope generation=3"), text)
		require.NotContains(t, text, "message", "%T", e)
		require.NotContains(t, text, "data", "%T", e)
		require.Equal(t, text, fmt.Sprintf("%v", e))
		data, err := json.Marshal(e)
		require.NoError(t, err)
		require.Contains(t, string(data), fmt.Sprintf(`"type":%q`, e.EventName()))
	}
	lost := &SessionLost{Stamp: Stamp{Key: Key{"s", "a"}, Generation: 2}, Cause: "reset\nsession_opened"}
	require.Equal(t, "session_lost s/a generation=2 cause=reset session_opened", lost.String())
}

// snake returns a name in snake case.
func snake(name string) string {
	return strings.ToLower(humps.ReplaceAllStringFunc(name, func(at string) string { return at[:1] + "_" + at[1:] }))
}
