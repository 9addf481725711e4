package commands

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/mcpactor/mcpactor/internal/definition"
	"github.com/mcpactor/mcpactor/pin"
)

// change is a difference between what was accepted of a server and what it is now.
type change struct {
	Of      string          `json:"of"`   // server, instructions, "tool NAME" or "prompt NAME"
	What    string          `json:"what"` // added, removed or redefined
	Fields  []string        `json:"fields,omitempty"`
	Refused string          `json:"refused,omitempty"` // why it is not offered
	Before  json.RawMessage `json:"before,omitempty"`
	After   json.RawMessage `json:"after,omitempty"`
}

// ofServer is what a change is of if the server is reached in another way.
const ofServer = "server"

// changesIn returns what differs between a server of a lock and what it is now, but for its version. Of a new server, these are the server
// itself and what is refused.
func changesIn(lock *pin.Lock, server string, now *pin.Server) (all []*change) {
	before, after := parts(lock.Servers[server]), parts(now)
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, of := range slices.Sorted(maps.Keys(names)) {
		was, known := before[of]
		is, there := after[of]
		if known && there && was.Digest == is.Digest {
			continue
		}
		c := &change{Of: of, What: "added", Before: was.Text, After: is.Text}
		switch {
		case !there:
			c.What = "removed"
		case known:
			c.What, c.Fields = "redefined", slices.Sorted(maps.Keys(membersOf(c.Before, c.After)))
		}
		if there {
			c.Refused = refused(lock, server, of, is.Digest, now.Identity)
		}
		if len(before) > 0 || of == ofServer || c.Refused != "" {
			all = append(all, c)
		}
	}
	return all
}

// parts returns the definitions of a server by what they are of. That of the server itself says how it is reached.
func parts(s *pin.Server) map[string]pin.Definition {
	all := map[string]pin.Definition{}
	if s == nil {
		return all
	}
	identity := definition.Encode(s.Identity)
	all[ofServer] = pin.Definition{Digest: string(identity), Text: identity}
	if s.Instructions != nil {
		all["instructions"] = *s.Instructions
	}
	for name, tool := range s.Tools {
		all["tool "+name] = tool
	}
	for name, prompt := range s.Prompts {
		all["prompt "+name] = prompt
	}
	return all
}

// refused returns why a part of a server is not offered, or "". The advice to run this command is left out.
func refused(lock *pin.Lock, server, of, digest string, is pin.Identity) string {
	var err error
	switch kind, name, _ := strings.Cut(of, " "); kind {
	case ofServer:
		err = lock.Identity(server, is)
	case "instructions":
		err = lock.Instructions(server, digest)
	case "tool":
		err = lock.Tool(server, name, digest)
	case "prompt":
		err = lock.Prompt(server, name, digest)
	}
	if err == nil {
		return ""
	}
	why, _, _ := strings.Cut(err.Error(), `: "mcpactor pin"`)
	return why
}

// membersOf returns the members in which two definitions differ, before and after. There are none in a text.
func membersOf(before, after json.RawMessage) map[string][2]json.RawMessage {
	var was, is map[string]json.RawMessage
	json.Unmarshal(before, &was) //nolint:errcheck // it has none then
	json.Unmarshal(after, &is)   //nolint:errcheck // as well
	differ := map[string][2]json.RawMessage{}
	for _, side := range []map[string]json.RawMessage{was, is} {
		for name := range side {
			if !bytes.Equal(was[name], is[name]) {
				differ[name] = [2]json.RawMessage{was[name], is[name]}
			}
		}
	}
	return differ
}
