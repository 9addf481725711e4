// Package publicid replaces the ids of tasks in what servers and clients send. Two servers may have the same ids, and nothing else in a
// request says which server has its task. So clients get public ids, which are sealed and name the server: no table is needed to find
// the task, also after a restart. All else in a message stays as it came.
package publicid

import (
	"bytes"
	"encoding/json"

	"github.com/mcpactor/mcpactor/gateway/internal/seal"
)

// purpose is that of sealed ids.
const purpose = "task"

// Of returns the public id of a task of a server. It is the same each time.
func Of(key *seal.Key, server, id string) (public string, ok bool) {
	public, err := key.SealName(purpose, [2]string{server, id})
	return public, err == nil
}

// Open returns the server that has the task with a public id, and the id there. It is not ok if the key has not sealed it.
func Open(key *seal.Key, public string) (server, id string, ok bool) {
	var its [2]string
	ok = key.Open(purpose, public, &its)
	return its[0], its[1], ok
}

// Places says where a message has ids of tasks, as a tree: nil is an id, and otherwise the keys are the names of members.
type Places map[string]Places

// each is the key of the elements of an array.
const each = "[]"

// The places of the kinds of messages. Of protocol 2025-11-25, all may have the task that they are related to.
var (
	related = Places{"io.modelcontextprotocol/related-task": {"taskId": nil}}
	// Call is for results of calls: the task that an old server has made is an object in them, and with a new server the result
	// is the task, which only Public finds. It is also for all else that has no other place.
	Call = Places{"task": {"taskId": nil}, "_meta": related}
	// Task is for what is said of one task: parameters and results of its methods, and notifications.
	Task = Places{"taskId": nil, "_meta": related, "result": {"_meta": related}}
	// List is for lists of tasks.
	List = Places{"tasks": {each: {"taskId": nil}}, "_meta": related}

	newTask = Places{"taskId": nil, "_meta": related}
)

// Public returns what a server has sent, with public ids.
func (p Places) Public(key *seal.Key, server string, raw json.RawMessage) json.RawMessage {
	if hasNone(raw) {
		return raw
	}
	if p["task"] != nil && isTask(raw) {
		p = newTask
	}
	return p.replace(raw, func(id string) (string, bool) { return Of(key, server, id) })
}

// Own returns what a client has sent for a server, with the ids that the server knows. Ids that are not those of its tasks stay.
func (p Places) Own(key *seal.Key, server string, raw json.RawMessage) json.RawMessage {
	if hasNone(raw) {
		return raw
	}
	return p.replace(raw, func(public string) (string, bool) {
		of, id, ok := Open(key, public)
		return id, ok && of == server
	})
}

// hasNone reports, mostly without decoding, that a message has no id of a task.
func hasNone(raw json.RawMessage) bool {
	return !bytes.Contains(raw, []byte(`"taskId"`)) || !json.Valid(raw)
}

// isTask reports whether a result is a task of protocol 2026-07-28.
func isTask(raw json.RawMessage) bool {
	is := false
	eachValue(raw, func(name string, value json.RawMessage) json.RawMessage {
		is = is || name == "resultType" && string(value) == `"task"`
		return value
	})
	return is
}

// replace returns a value with its ids replaced.
func (p Places) replace(raw json.RawMessage, with func(string) (string, bool)) json.RawMessage {
	if p != nil {
		return eachValue(raw, func(name string, value json.RawMessage) json.RawMessage {
			if of, has := p[name]; has {
				return of.replace(value, with)
			}
			return value
		})
	}
	var id string
	if json.Unmarshal(raw, &id) != nil {
		return raw
	}
	other, ok := with(id)
	if !ok {
		return raw
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.Encode(other) //nolint:errcheck // a string can be encoded
	return bytes.TrimSpace(out.Bytes())
}

// eachValue returns an object or an array with other values, which replace returns, and with all between them as it came. Elements
// of an array have the name "[]". A value that is neither is returned as it came. raw is valid JSON.
func eachValue(raw json.RawMessage, replace func(name string, value json.RawMessage) json.RawMessage) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	begin, err := decoder.Token()
	if err != nil || begin != json.Delim('{') && begin != json.Delim('[') {
		return raw
	}
	var out json.RawMessage
	copied := 0 // of raw, into out
	for decoder.More() {
		name := each
		if begin == json.Delim('{') {
			key, err := decoder.Token()
			if err != nil {
				return raw
			}
			name, _ = key.(string)
		}
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return raw
		}
		end := int(decoder.InputOffset())
		if other := replace(name, value); !bytes.Equal(other, value) {
			out = append(append(out, raw[copied:end-len(value)]...), other...)
			copied = end
		}
	}
	if copied == 0 {
		return raw
	}
	return append(out, raw[copied:]...)
}
