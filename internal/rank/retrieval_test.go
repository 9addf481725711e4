package rank

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// question is what a model wants to do, and the tools that do it, as "server/name".
type question struct {
	Question string
	Tools    []string
}

// recall returns how many questions have a right tool among the first n that are found.
func recall(x *Index, names []string, questions []question, n int) (found int) {
	for _, q := range questions {
		if slices.ContainsFunc(x.Search(q.Question, n), func(h Hit) bool { return slices.Contains(q.Tools, names[h.Document]) }) {
			found++
		}
	}
	return found
}

// The tools are those that 20 servers listed. Somebody who has not seen the search has written 100 questions for tools that were chosen at
// random, as an agent would ask for them, and which tools are right. They were split at random: the search was changed with the results for
// development in view, and of those that are held back only the number was looked at, before and after that. The 100 paraphrased questions are by the
// author of the search, who wrote them before reading it, and avoid the words of the tools.
func TestToolsOfRealServersAreFound(t *testing.T) {
	var servers []struct {
		Server string
		Tools  []struct {
			Name, Title, Description string
			InputSchema              json.RawMessage
		}
	}
	decode(t, "testdata/tools.json", &servers)
	require.Len(t, servers, 20)
	var documents []Document
	var names []string
	for _, server := range servers {
		for _, tool := range server.Tools {
			names = append(names, server.Server+"/"+tool.Name)
			tool := Tool{Name: tool.Name, Server: server.Server, Title: tool.Title, Description: tool.Description, Schema: tool.InputSchema}
			documents = append(documents, tool.Document())
		}
	}
	x := New(documents)
	var parts map[string][]question
	decode(t, "testdata/questions.json", &parts)
	for part, least := range map[string]int{"development": 49, "held_back": 48, "paraphrased": 79} {
		questions := parts[part]
		require.GreaterOrEqual(t, len(questions), 50)
		for _, q := range questions {
			require.Subset(t, names, q.Tools)
		}
		found := recall(x, names, questions, 5)
		t.Logf("%s: of %d questions, %d have a right tool first, %d among the first 5, %d among the first 10",
			part, len(questions), recall(x, names, questions, 1), found, recall(x, names, questions, 10))
		require.GreaterOrEqual(t, found, least, part)
	}
}

// decode reads a JSON file.
func decode(t *testing.T, file string, into any) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, into))
}
