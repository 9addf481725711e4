package publicid

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/gateway/internal/seal"
)

func newKey(t *testing.T, secret string) *seal.Key {
	key, err := seal.New([]byte(secret))
	require.NoError(t, err)
	return key
}

// public returns the public id of a task of the server "s".
func public(t *testing.T, key *seal.Key, id string) string {
	public, ok := Of(key, "s", id)
	require.True(t, ok)
	return public
}

func TestOnlyIDsAreReplaced(t *testing.T) {
	key := newKey(t, "secret")
	for _, c := range []struct {
		places Places
		sent   string // with @ before each id that is to be replaced
	}{
		{Call, "{ \"task\" : {\"n\":12345678901234567890, \"taskId\" :\t\"@t1\" , \"ttl\":1.0},\n\"later\":{\"taskId\":\"t1\"} } "},
		{Call, `{"resultType":"task","taskId":"@<é>\n","later":[1.0,{"taskId":"t1"}],"task":{"taskId":"t1"}}`},
		{Call, `{"taskId":"t1","resultType":"complete","structuredContent":{"taskId":"t1","task":{"taskId":"t1"}},"content":[]}`},
		{Call, `{"content":[{"type":"text","text":"{\"taskId\":\"t1\"}"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"@t1"},"taskId":"t1"}}`},
		{Call, `{"task":"t1","_meta":{"taskId":"t1"}}`},
		{Task, `{"taskId":"@t1","status":"completed","result":{"taskId":"t1","content":[]},"inputRequests":{"q":{"params":{"taskId":"t1"}}}}`},
		{Task, `{"taskId":"@t1","taskId":"@t2","result":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"@t1"}}}}`},
		{Task, `{"taskId":7,"result":null,"_meta":[]}`},
		{Task, `{"taskId":"@"}`},
		{List, `{"tasks":[{"taskId":"@t1"},{"taskId":"@t2","later":1e400},null,7,{}, [ ] ],"nextCursor":"taskId"}`},
		{List, `{"tasks":{"taskId":"t1"}}`},
		{List, `[{"taskId":"t1"}]`},
		{List, `"taskId"`},
		{Task, `{"taskId":"t1"`},
		{Task, `{"taskId":"t1",}`},
		{Task, `{"a":1 "taskId":"t1"}`},
		{Task, ``},
	} {
		parts := strings.Split(c.sent, `"@`)
		want := parts[0]
		for _, part := range parts[1:] {
			quoted, rest, _ := strings.Cut(part, `"`)
			var id string
			require.NoError(t, json.Unmarshal([]byte(`"`+quoted+`"`), &id))
			want += `"` + public(t, key, id) + `"` + rest
		}
		sent := strings.ReplaceAll(c.sent, `"@`, `"`)
		got := c.places.Public(key, "s", json.RawMessage(sent))
		require.Equal(t, want, string(got))
		if c.places["task"] == nil {
			require.Equal(t, sent, string(c.places.Own(key, "s", got)), "and back")
			require.Equal(t, string(got), string(c.places.Own(key, "another", got)), "they are those of another server")
			require.Equal(t, string(got), string(c.places.Own(newKey(t, "other"), "s", got)))
		}
	}
}

func TestPublicIDsNameTheirServer(t *testing.T) {
	key := newKey(t, "secret")
	seen := map[string]bool{}
	for _, its := range [][2]string{{"a", "t1"}, {"b", "t1"}, {"a", "t2"}, {"at1", ""}, {"", "at1"}, {"a", `"t1`}} {
		text, ok := Of(key, its[0], its[1])
		require.True(t, ok)
		require.False(t, seen[text])
		seen[text] = true
		require.NotContains(t, text, "t1")
		server, id, ok := Open(newKey(t, "secret"), text)
		require.True(t, ok, "after a restart")
		require.Equal(t, its, [2]string{server, id})
	}
	for _, forged := range []string{"", "t1", strings.Repeat("A", 60)} {
		_, _, ok := Open(key, forged)
		require.False(t, ok)
	}
}

// Whatever a server sends, nothing panics, and what was replaced is put back.
func FuzzIDsAreReplacedAndPutBack(f *testing.F) {
	key, err := seal.New([]byte("secret"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(`{"taskId":"t1","tasks":[{"taskId":"t2"}],"task":{"taskId":"t3"},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t4"}}}`)
	f.Fuzz(func(t *testing.T, sent string) {
		for _, places := range []Places{Call, Task, List} {
			public := places.Public(key, "s", json.RawMessage(sent))
			require.Equal(t, json.Valid([]byte(sent)), json.Valid(public))
			if !json.Valid([]byte(sent)) {
				require.Equal(t, sent, string(public))
			}
		}
		var before, after any
		if json.Unmarshal([]byte(sent), &before) == nil {
			require.NoError(t, json.Unmarshal(Task.Own(key, "s", Task.Public(key, "s", json.RawMessage(sent))), &after))
			require.Equal(t, before, after)
		}
	})
}
