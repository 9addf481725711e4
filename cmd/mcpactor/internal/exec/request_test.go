package exec

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

func TestRequestsBecomeCommands(t *testing.T) {
	r, err := parseRequest([]byte(`{"id":"1","server":"s","scope":"a","tool":"echo","arguments":{"n":12345678901234567890},"timeout":"5s","replay":"always"}`))
	require.NoError(t, err)
	require.Equal(t, 5*time.Second, r.timeout)
	op := r.cmd.(*messages.CallTool)
	require.Equal(t, messages.Key{Server: "s", Scope: "a"}, op.Key)
	require.Equal(t, messages.ReplayAlways, op.Replay)
	require.Equal(t, "echo", op.Params.Name)
	arguments, err := json.Marshal(op.Params.Arguments)
	require.NoError(t, err)
	require.Equal(t, `{"n":12345678901234567890}`, string(arguments), "numbers keep their precision")

	header := messages.To("s", "")
	header.Verbatim = true
	for line, want := range map[string]messages.Command{
		`{"id":1,"server":"s","op":"list_tools"}`:                                    &messages.ListTools{Header: header},
		`{"id":1,"server":"s","op":"ping"}`:                                          &messages.Ping{Header: header},
		`{"id":1,"server":"s","op":"open"}`:                                          &messages.Open{Header: header},
		`{"id":1,"server":"s","op":"list_resources"}`:                                &messages.ListResources{Header: header},
		`{"id":1,"server":"s","op":"list_resource_templates"}`:                       &messages.ListResourceTemplates{Header: header},
		`{"id":1,"server":"s","op":"list_prompts"}`:                                  &messages.ListPrompts{Header: header},
		`{"id":1,"server":"s","op":"read_resource","uri":"u"}`:                       &messages.ReadResource{Header: header, Params: &mcp.ReadResourceParams{URI: "u"}},
		`{"id":1,"server":"s","op":"subscribe","uri":"u"}`:                           &messages.Subscribe{Header: header, URI: "u"},
		`{"id":1,"server":"s","op":"unsubscribe","uri":"u"}`:                         &messages.Unsubscribe{Header: header, URI: "u"},
		`{"id":1,"server":"s","op":"set_log_level","level":"info"}`:                  &messages.SetLogLevel{Header: header, Level: "info"},
		`{"id":1,"server":"s","op":"set_roots","roots":[{"uri":"file:///a"}]}`:       &messages.SetRoots{Header: header, Roots: []*mcp.Root{{URI: "file:///a"}}},
		`{"id":1,"server":"s","op":"set_roots","roots":[]}`:                          &messages.SetRoots{Header: header, Roots: []*mcp.Root{}},
		`{"id":1,"server":"s","op":"custom","method":"acme/x"}`:                      &messages.Custom{Header: header, Name: "acme/x"},
		`{"id":1,"server":"s","op":"custom","method":"acme/x","params":{"a": 1}}`:    &messages.Custom{Header: header, Name: "acme/x", Params: json.RawMessage(`{"a": 1}`)},
		`{"id":1,"server":"s","op":"get_prompt","prompt":"p","arguments":{"a":"b"}}`: &messages.GetPrompt{Header: header, Params: &mcp.GetPromptParams{Name: "p", Arguments: map[string]string{"a": "b"}}},
		`{"id":1,"server":"s","op":"complete","ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"b"}}`: &messages.Complete{Header: header, Params: &mcp.CompleteParams{
			Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "p"}, Argument: mcp.CompleteParamsArgument{Name: "a", Value: "b"},
		}},
		`{"id":1,"op":"inspect"}`:                                  &messages.Inspect{},
		`{"id":1,"op":"close_all"}`:                                &messages.CloseAll{},
		`{"id":1,"op":"close_scope","scope":"a"}`:                  &messages.CloseScope{Scope: "a"},
		`{"id":1,"op":"close_server","server":"s"}`:                &messages.CloseServer{Server: "s"},
		`{"id":1,"op":"close_session","server":"s"}`:               &messages.CloseSession{Key: messages.Key{Server: "s", Scope: "default"}},
		`{"id":1,"op":"close_matching","scopes":"a/*"}`:            &messages.CloseMatching{Scopes: "a/*"},
		`{"id":1,"op":"close_matching","server":"s","scopes":"*"}`: &messages.CloseMatching{Server: "s", Scopes: "*"},
		`{"id":1,"op":"release_handles","scope":"a"}`:              &messages.ReleaseHandles{Scope: "a"},
		`{"id":1,"op":"list_handles","scope":"a"}`:                 &messages.ListHandles{Scope: "a"},
		`{"id":1,"op":"restart","server":"s","scope":"a"}`:         &messages.Restart{Key: messages.Key{Server: "s", Scope: "a"}},
		`{"id":1,"op":"forget","server":"s"}`:                      &messages.Forget{Server: "s"},
	} {
		r, err := parseRequest([]byte(line))
		require.NoError(t, err, line)
		require.Equal(t, want, r.cmd, line)
		require.Equal(t, "1", string(r.id))
	}
}

func TestResponsesSayWhatBecameOfHandles(t *testing.T) {
	left := []messages.Left{{Key: messages.Key{Server: "s", Scope: "a"}, Handle: "open", Reason: "refused"}}
	for want, reply := range map[string]messages.Reply{
		`{"sessions":1,"left":[{"key":{"server":"s","scope":"a"},"handle":"open","reason":"refused"}]}`: &messages.Closed{Sessions: 1, Left: left},
		`{"released":2,"left":[{"key":{"server":"s","scope":"a"},"handle":"open","reason":"refused"}]}`: &messages.HandlesReleased{Released: 2, Left: left},
		`{"released":0,"left":[]}`: &messages.HandlesReleased{},
		`{"handles":[{"key":{"server":"s","scope":"a"},"mint":"open","release":"close","argument":"id","handle":"h","minted":"0001-01-01T00:00:00Z","used":"0001-01-01T00:00:00Z"}]}`: &messages.HandleList{
			Handles: []messages.HeldHandle{{Key: left[0].Key, Mint: "open", Release: "close", Argument: "id", Handle: "h"}},
		},
		`{"handles":[]}`: &messages.HandleList{},
	} {
		text, err := json.Marshal(responseTo(nil, reply, nil).Result)
		require.NoError(t, err)
		require.JSONEq(t, want, string(text))
	}
}

func TestParametersOfOperationsAreNoFieldsOfEveryRequest(t *testing.T) {
	for _, field := range []string{"id", "server", "scope", "tool", "name", "op", "timeout", "quiet", "replay", "progress", "target"} {
		require.Empty(t, parameterOps[field], field)
	}
}

func TestRequestsForAllServersOfAScope(t *testing.T) {
	r, err := parseRequest([]byte(`{"id":1,"op":"tools","scope":"a"}`))
	require.NoError(t, err)
	require.Equal(t, &request{id: json.RawMessage("1"), listsTools: true, key: messages.Key{Scope: "a"}, spans: &keySet{scope: "a"}}, r)

	r, err = parseRequest([]byte(`{"id":1,"name":"s__echo","arguments": {"a":1} ,"replay":"never","progress":true}`))
	require.NoError(t, err)
	require.Equal(t, &request{
		id: json.RawMessage("1"), name: "s__echo", arguments: json.RawMessage(`{"a":1}`), replay: messages.ReplayNever, progress: true,
		key: messages.Key{Scope: "default"},
	}, r)
}

func TestErrorsOfRequestsNameTheField(t *testing.T) {
	for line, want := range map[string]string{
		`x`:                   "is not valid JSON at column 1",
		`[]`:                  "is of type array, want an object",
		`{}`:                  "id: is missing",
		`{"id":null}`:         "id: is missing",
		`{"id":""}`:           "id: must be a string or a number",
		`{"id":{}}`:           "id: must be a string or a number",
		`{"id":1}`:            "tool: is missing: give tool, name or op",
		`{"id":1,"tool":"t"}`: "server: is missing: give it, or put a name that tools prints into name",
		`{"id":1,"tool":7}`:   "tool: is of type number, want a string",
		`{"id":1,"server":"s","tool":"t","op":"ping"}`:                             "op: conflicts with tool: give one of them",
		`{"id":1,"server":"s","tool":"t","arguments":[]}`:                          "arguments: must be an object",
		`{"id":1,"server":"s","op":"ping","arguments":{}}`:                         "arguments: are only for tools and prompts",
		`{"id":1,"server":"s","op":"ping","uri":"u"}`:                              "uri: is only for read_resource, subscribe, unsubscribe",
		`{"id":1,"server":"s","op":"read_resource"}`:                               "uri: is missing",
		`{"id":1,"server":"s","op":"get_prompt"}`:                                  "prompt: is missing",
		`{"id":1,"server":"s","op":"get_prompt","prompt":"p","arguments":{"a":7}}`: "arguments.a: is of type number, want a string",
		`{"id":1,"server":"s","op":"set_log_level"}`:                               "level: is missing",
		`{"id":1,"server":"s","op":"complete"}`:                                    "ref: is missing",
		`{"id":1,"name":"s__t","op":"ping"}`:                                       "name: conflicts with tool and op: give one of them",
		`{"id":1,"name":"s__t","tool":"t"}`:                                        "name: conflicts with tool and op: give one of them",
		`{"id":1,"name":"s__t","server":"s"}`:                                      "server: is not allowed here: name and the op tools",
		`{"id":1,"name":"s__t","arguments":7}`:                                     "arguments: must be an object",
		`{"id":1,"op":"tools","server":"s"}`:                                       "server: is not allowed here: name and the op tools",
		`{"id":1,"op":"tools","arguments":{}}`:                                     "arguments: are only for tools and prompts",
		`{"id":1,"op":"tools","progress":true}`:                                    "progress: is not allowed for tools",
		`{"id":1,"op":"inspect","progress":true}`:                                  "progress: is not allowed for inspect",
		`{"id":1,"server":"s","tool":"t","progress":"yes"}`:                        "progress: is of type string, want true or false",
		`{"id":1,"server":"s","op":"custom"}`:                                      "method: is missing",
		`{"id":1,"server":"s","op":"ping","params":{}}`:                            "params: is only for custom",
		`{"id":1,"server":"s","op":"set_roots"}`:                                   "roots: are missing",
		`{"id":1,"server":"s","op":"set_roots","roots":7}`:                         "roots: is of type number, want a list",
		`{"id":1,"server":"s","tool":"t","roots":[]}`:                              "roots: is only for set_roots",
		`{"id":1,"server":"s","op":"fly"}`:                                         `op: "fly" is unknown; the operations are list_tools,`,
		`{"id":1,"server":"s","tool":"t","timeout":5}`:                             `timeout: want a duration such as "30s"`,
		`{"id":1,"server":"s","tool":"t","timeout":"-1s"}`:                         "timeout: is negative",
		`{"id":1,"server":"s","tool":"t","quiet":"-1s"}`:                           "quiet: is negative",
		`{"id":1,"server":"s","tool":"t","replay":"sometimes"}`:                    `replay: "sometimes" is not never, safe or always`,
		`{"id":1,"server":"s","tool":"t","target":"2"}`:                            "target: is only for cancel",
		`{"id":1,"op":"cancel"}`:                                                   "target: is missing",
		`{"id":1,"op":"close_server"}`:                                             "server: is missing",
		`{"id":1,"op":"restart"}`:                                                  "server: is missing",
		`{"id":1,"op":"forget"}`:                                                   "server: is missing",
		`{"id":1,"op":"close_session"}`:                                            "server: is missing",
		`{"id":1,"op":"close_matching"}`:                                           "scopes: is empty",
		`{"id":1,"op":"close_matching","scopes":"["}`:                              "scopes: ",
		`{"id":1,"op":"close_all","scopes":"*"}`:                                   "scopes: is only for close_matching",
		`{"id":1,"server":"s","tool":"t","argument":{}}`:                           "argument: is only for complete",
		`{"id":1,"server":"s","tool":"t","arg":{}}`:                                "arg: is not a field; the fields are argument, arguments, fresh, id,",
	} {
		_, err := parseRequest([]byte(line))
		require.ErrorContains(t, err, want, line)
	}
}

// H-E11: encoding/json replaces invalid Unicode by U+FFFD, so that different scopes
// would share a session.
func TestRequestsThatAreNotUnicodeAreRefused(t *testing.T) {
	for line, want := range map[string]string{
		"{\"id\":1,\"server\":\"s\",\"scope\":\"a\xff\",\"tool\":\"t\"}":                    "is not valid UTF-8",
		`{"id":1,"server":"s","scope":"a\ud800","tool":"t"}`:                                "half of a character",
		`{"id":1,"server":"s","scope":"a\udc01b","tool":"t"}`:                               "half of a character",
		`{"id":1,"server":"s","tool":"t","arguments":{"\ud800":1}}`:                         "half of a character",
		"{\"id\":1,\"server\":\"s\",\"tool\":\"t\",\"arguments\":{\"a\":\"\xed\xa0\x80\"}}": "is not valid UTF-8",
	} {
		r, err := parseRequest([]byte(line))
		require.ErrorContains(t, err, want, line)
		require.Equal(t, "1", string(r.id), "the response has the id")
	}
	for _, id := range []string{"\"\xff\"", `"\ud800"`} {
		r, err := parseRequest([]byte(`{"id":` + id + `,"op":"inspect"}`))
		require.ErrorContains(t, err, "id: ")
		require.Empty(t, r.id)
	}
	r, err := parseRequest([]byte(`{"id":1,"server":"s","scope":"\ud83d\ude00","tool":"t"}`))
	require.NoError(t, err)
	require.Equal(t, "😀", r.key.Scope)
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"id":"1","server":"s","scope":"a","tool":"echo","arguments":{"a":1},"timeout":"5s","replay":"safe"}`))
	f.Add([]byte(`{"id":2,"op":"cancel","target":"1"}`))
	f.Add([]byte(`{"id":3,"name":"s__t","scope":"a","progress":true}`))
	f.Add([]byte(`{"id":4,"op":"set_roots","server":"s","roots":[{"uri":"file:///a"}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := parseRequest(line)
		require.NotNil(t, r)
		if err == nil {
			require.NotEmpty(t, r.id)
			require.True(t, (r.cmd == nil) == (r.target != "" || r.listsTools || r.name != ""))
		}
		_, err = json.Marshal(invalidResponse(r.id, "x"))
		require.NoError(t, err)
	})
}
