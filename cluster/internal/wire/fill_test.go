package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// filler sets fields to values that are not zero, and that differ from each other.
type filler struct {
	t *testing.T
	n int
	// inexact is true where the SDK itself decodes numbers, as float64.
	inexact bool
}

// filled returns a message whose fields are all set.
func filled(t *testing.T, of reflect.Type) any {
	v := reflect.New(of)
	(&filler{t: t}).fill(v.Elem(), of, "")
	return v.Interface()
}

// anything returns JSON of all kinds, with numbers that have more digits than a float64.
func (f *filler) anything() map[string]any {
	f.n++
	values := map[string]any{"text": fmt.Sprintf("text %d", f.n), "list": []any{0.5, true, nil, map[string]any{}}, "float": float64(f.n)}
	if !f.inexact {
		values["int"], values["uint"], values["number"] = int64(1)<<62+1, uint64(1)<<63+1, json.Number("0.12345678901234567890")
	}
	return values
}

func (f *filler) fill(v reflect.Value, in reflect.Type, name string) {
	f.n++
	if v.Type() != reflect.TypeFor[json.RawMessage]() && reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[json.Unmarshaler]()) && !f.inexact {
		f.inexact = true
		defer func() { f.inexact = false }()
	}
	switch to := v.Addr().Interface().(type) {
	case *time.Time:
		*to = time.Now().Add(time.Duration(f.n) * time.Minute)
		if name != "Deadline" && name != "WaitUntil" {
			*to = to.UTC().Round(0)
		}
		return
	case *time.Duration:
		*to = time.Duration(f.n) * 1500 * time.Millisecond
		return
	case **actor.PID:
		*to = actor.NewPID("host:1", fmt.Sprintf("actor-%d", f.n))
		return
	case *json.RawMessage:
		*to = json.RawMessage(fmt.Sprintf(`{"n":%d,"int":12345678901234567890123}`, f.n))
		return
	case *error:
		return // Failure.Cause does not cross
	case *messages.Attributes:
		*to = messages.NewAttributes(map[string]string{"user": fmt.Sprint(f.n), "run": "7"})
		return
	case *messages.Replay:
		*to = messages.ReplayAlways
		return
	case *any:
		*to = f.anything()
		return
	case *mcp.Meta:
		*to = f.anything()
		return
	case *mcp.Content:
		*to = f.content("resource")
		return
	case *[]mcp.Content:
		kinds := []string{"text", "image", "audio", "link", "resource", "use", "result"}
		switch in {
		case reflect.TypeFor[mcp.CreateMessageWithToolsResult]():
			kinds = []string{"text", "image", "audio", "use"}
		case reflect.TypeFor[mcp.SamplingMessageV2]():
			kinds = []string{"result"} // a single one is encoded as an object
		case reflect.TypeFor[mcp.ToolResultContent]():
			kinds = []string{"text", "image", "audio", "link", "resource"}
		}
		for _, kind := range kinds {
			*to = append(*to, f.content(kind))
		}
		return
	case *mcp.InputRequestMap:
		*to = mcp.InputRequestMap{"elicit": one[mcp.ElicitParams](f), "sample": one[mcp.CreateMessageWithToolsParams](f), "roots": one[mcp.ListRootsParams](f)}
		return
	case *mcp.InputResponseMap:
		*to = mcp.InputResponseMap{"elicit": one[mcp.ElicitResult](f), "sample": one[mcp.CreateMessageWithToolsResult](f), "roots": one[mcp.ListRootsResult](f)}
		return
	case *mcp.CompleteReference:
		*to = mcp.CompleteReference{Type: "ref/prompt", Name: fmt.Sprint(f.n)}
		return
	case *[]byte:
		*to = []byte{1, byte(f.n)}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("%s-%d", strings.ToLower(name), f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.n))
	case reflect.Uint64:
		v.SetUint(1<<63 + uint64(f.n))
	case reflect.Float64:
		v.SetFloat(float64(f.n) / 2)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), in, name)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0), in, name)
		f.fill(v.Index(1), in, name)
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i), in, name)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key, in, name)
		f.fill(value, in, name)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			switch {
			case field.Anonymous && field.Type.Kind() == reflect.Struct && !field.IsExported():
				for j := range v.Field(i).NumField() {
					f.fill(v.Field(i).Field(j), field.Type, field.Type.Field(j).Name)
				}
			case field.IsExported():
				f.fill(v.Field(i), v.Type(), field.Name)
			}
		}
	default:
		f.t.Fatalf("%v.%s is a %v: teach the test about it", in, name, v.Type())
	}
}

func one[T any](f *filler) *T {
	v := reflect.New(reflect.TypeFor[T]())
	f.fill(v.Elem(), v.Type().Elem(), "")
	return v.Interface().(*T)
}

func (f *filler) content(kind string) mcp.Content {
	switch kind {
	case "text":
		return one[mcp.TextContent](f)
	case "image":
		return one[mcp.ImageContent](f)
	case "audio":
		return one[mcp.AudioContent](f)
	case "link":
		return one[mcp.ResourceLink](f)
	case "resource":
		return one[mcp.EmbeddedResource](f)
	case "use":
		return one[mcp.ToolUseContent](f)
	}
	return one[mcp.ToolResultContent](f)
}
