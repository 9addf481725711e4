package wire

import (
	"reflect"
	"regexp"
	"strings"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// init names all messages. A name must not change: it is that of the type, such as "call-tool" for CallTool.
func init() {
	register("tool-result", encodeToolResult, decodeToolResult)
	register("snapshot", func(m *messages.Snapshot) ([]byte, error) {
		return marshal(snapshot{m.ID, m})
	}, func(body []byte) (*messages.Snapshot, error) {
		m := snapshot{Snapshot: &messages.Snapshot{}}
		err := unmarshal(body, &m)
		m.Snapshot.ID = m.ID
		return m.Snapshot, err
	})
	for op, reply := range clusterapi.Operations() {
		named(formed, op)
		if byType[reflect.TypeOf(reply).Elem()] == nil { // several have the same
			named(plain, reply)
		}
	}
	named(formed,
		&messages.Cancel{}, &messages.CancelScope{}, &messages.CloseSession{}, &messages.CloseScope{}, &messages.CloseServer{}, &messages.CloseMatching{},
		&messages.CloseAll{}, &messages.Restart{}, &messages.Forget{}, &messages.Pin{}, &messages.Check{}, &messages.Inspect{}, &messages.Bind{},
		&messages.ReleaseHandles{}, &messages.ListHandles{},
		&messages.Elicit{}, &messages.Sample{}, &messages.ListRoots{}, &messages.Withdrawn{},
	)
	named(plain,
		&messages.Failure{}, &messages.Closed{}, &messages.Bound{}, &messages.Pinned{}, &messages.Status{}, &messages.Done{},
		&messages.HandlesReleased{}, &messages.HandleList{},
		&messages.HandleMinted{}, &messages.HandleReleased{}, &messages.HandleLost{}, &messages.HandleLeft{},
		&messages.SessionOpened{}, &messages.SessionExpired{}, &messages.SessionLost{}, &messages.SessionRestarting{}, &messages.SessionRestarted{},
		&messages.SessionGaveUp{}, &messages.SessionEvicted{}, &messages.SessionClosed{}, &messages.CallReplayed{}, &messages.TaskChanged{},
		&messages.CatalogueChanged{}, &messages.OwnerTerminated{}, &messages.ToolsChanged{}, &messages.PromptsChanged{}, &messages.ResourcesChanged{},
		&messages.ResourceUpdated{}, &messages.ServerLog{}, &messages.ElicitationCompleted{}, &messages.CustomNotification{}, &messages.Progress{},
		&messages.Elicited{}, &messages.Sampled{}, &messages.Roots{}, &messages.Refusal{},
	)
}

// snapshot is a [messages.Snapshot] with its ID.
type snapshot struct {
	ID string `json:"id,omitempty"`
	*messages.Snapshot
}

// register adds a type that has functions of its own.
func register[T any](name string, encode func(*T) ([]byte, error), decode func([]byte) (*T, error)) {
	add(reflect.TypeFor[T](), &format{
		name,
		func(v any) ([]byte, error) { return encode(v.(*T)) },
		func(body []byte) (any, error) { return decode(body) },
	})
}

// named adds the types of messages by their names.
func named(add func(name string, of reflect.Type), all ...any) {
	for _, one := range all {
		of := reflect.TypeOf(one).Elem()
		add(kebabCase(of.Name()), of)
	}
}

// hump is where a new word begins in the name of a type.
var hump = regexp.MustCompile(`([a-z])([A-Z])`)

// kebabCase returns the name on the wire of a type.
func kebabCase(name string) string { return strings.ToLower(hump.ReplaceAllString(name, "${1}-$2")) }
