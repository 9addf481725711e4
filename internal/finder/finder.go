// Package finder has the tool with which a model finds other tools.
package finder

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const (
	// Name is the name of the tool.
	Name = "find_tools"
	// Title is its title.
	Title = "Find tools"
	// Description is its description.
	Description = "Finds more tools. Describe what you want to do. The tools that match best are listed with their parameters, and you can call them from then on."

	// defaultFound and maxFound bound the tools that one call finds.
	defaultFound, maxFound = 5, 20
	// maxText bounds the text of a result, in bytes. Definitions beyond it are left out.
	maxText = 64 << 10
)

// Schema is the JSON Schema of its arguments.
var Schema = fmt.Sprintf(`{"type":"object","properties":{`+
	`"query":{"type":"string","description":"what the tool should do, in a few words"},`+
	`"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"the number of tools, by default %d"}},"required":["query"]}`, maxFound, defaultFound)

// ErrArguments is the error for arguments that are not those of the tool. It tells a model what to give.
var ErrArguments = errors.New(`arguments: give {"query": "what the tool should do"}, and optionally "limit", a number`)

// Query is the arguments of a call.
type Query struct {
	Text  string
	Limit int // of tools
}

// Read reads the arguments of a call, a JSON object. The limit is in its bounds. The error is [ErrArguments].
func Read(arguments json.RawMessage) (Query, error) {
	given := struct {
		Query string   `json:"query"`
		Limit *float64 `json:"limit"` // some models write 5.0
	}{}
	if json.Unmarshal(arguments, &given) != nil || strings.TrimSpace(given.Query) == "" {
		return Query{}, ErrArguments
	}
	q := Query{given.Query, defaultFound}
	if given.Limit != nil {
		q.Limit = int(min(max(1, *given.Limit), maxFound))
	}
	return q, nil
}

// Found is a tool that was found.
type Found struct {
	Name       string
	Definition json.RawMessage // on one line
}

// Text returns the result of a call, for a model: a line for each tool that was found, the best first. all is the number of tools that there are.
func Text(found []Found, all int) string {
	if len(found) == 0 {
		return fmt.Sprintf("None of %d tools matches. Describe what you want to do in other words.", all)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Found %d of %d tools. You can call them now.\n", len(found), all)
	for _, tool := range found {
		line := tool.Definition
		if b.Len()+len(line) > maxText {
			line, _ = json.Marshal(map[string]string{"name": tool.Name, "definition": "left out because of its size"}) // they are texts
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}
