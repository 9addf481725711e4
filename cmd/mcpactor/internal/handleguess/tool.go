package handleguess

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is what is read of a tool.
type tool struct {
	*mcp.Tool
	words     []string // of its name, in the singular
	arguments []string
	required  []string
	id        string // its only required argument, if that is a text or a number
}

// schema is the part of a JSON schema that is read.
type schema struct {
	Type       any                `json:"type"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
}

// read reads a tool. What cannot be read has no arguments.
func read(of *mcp.Tool) tool {
	input := decode(of.InputSchema)
	t := tool{Tool: of, words: words(of.Name), arguments: slices.Collect(maps.Keys(input.Properties)), required: input.Required}
	if len(t.required) != 1 || !safe.MatchString(t.required[0]) {
		return t
	}
	if argument := input.Properties[t.required[0]]; argument != nil && argument.isScalar() {
		t.id = t.required[0]
	}
	return t
}

func decode(value any) (s schema) {
	raw, err := json.Marshal(value)
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return schema{}
	}
	return s
}

// isScalar reports whether a value is a text or a number.
func (s *schema) isScalar() bool {
	return s.Type == "string" || s.Type == "number" || s.Type == "integer"
}

// maxDeep is how deep a path is looked for.
const maxDeep = 3

// pathOf returns where the result of a tool has a handle, or "" if its schema does not say so.
func (t *tool) pathOf(id string) string {
	output := decode(t.OutputSchema)
	if path := output.find("", maxDeep, func(_, name string) bool { return slices.Equal(words(name), words(id)) }); path != "" {
		return path
	}
	of := stem(id)
	return output.find("", maxDeep, func(parent, name string) bool {
		return isID(name) && len(stem(name)) == 0 && slices.Equal(words(parent), of)
	})
}

// find returns the path of the first text or number whose name matches, with the name of the object that it is in.
func (s *schema) find(parent string, deep int, matches func(parent, name string) bool) string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.Properties)), func(name string) bool {
		return s.Properties[name] == nil || strings.Contains(name, ".") || !safe.MatchString(name)
	})
	for _, name := range names {
		if s.Properties[name].isScalar() && matches(parent, name) {
			return name
		}
	}
	for _, name := range names {
		if deep > 1 {
			if path := s.Properties[name].find(name, deep-1, matches); path != "" {
				return name + "." + path
			}
		}
	}
	return ""
}

// part matches a word in a name.
var part = regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)

// words returns the words of a name such as "list_pages" or "listPages", in lower case and in the singular.
func words(name string) (all []string) {
	for _, word := range part.FindAllString(name, -1) {
		all = append(all, singular(strings.ToLower(word)))
	}
	return all
}

func singular(word string) string {
	for _, plural := range []struct{ end, singular string }{{"sses", "ss"}, {"ches", "ch"}, {"shes", "sh"}, {"xes", "x"}, {"ies", "y"}, {"ss", "ss"}, {"s", ""}} {
		if head, is := strings.CutSuffix(word, plural.end); is {
			return head + plural.singular
		}
	}
	return word
}

// isID reports whether a name says that it is that of a handle.
func isID(name string) bool {
	all := words(name)
	return len(all) > 0 && slices.Contains(idWords, all[len(all)-1])
}

// stem returns the words that say what a handle is of.
func stem(id string) []string {
	if id == "pid" {
		return []string{"process"}
	}
	return without(words(id), idWords...)
}

var idWords = []string{"id", "pid", "uuid", "handle"}

// without returns the words but some.
func without(all []string, some ...string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(word string) bool { return slices.Contains(some, word) })
}

// same reports whether two names have the same words, in any order.
func same(one, other []string) bool { return within(one, other) && within(other, one) }

// within reports whether all words are among others.
func within(all, others []string) bool {
	return !slices.ContainsFunc(all, func(word string) bool { return !slices.Contains(others, word) })
}
