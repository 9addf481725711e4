package catalogue

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// ListOf returns the result of an operation that lists.
func ListOf(result messages.Result, at time.Time) *List {
	switch r := result.(type) {
	case *messages.ToolList:
		return listOf(r, r.Result.Tools, r.Result.Cacheable, at)
	case *messages.PromptList:
		return listOf(r, r.Result.Prompts, r.Result.Cacheable, at)
	case *messages.ResourceList:
		return listOf(r, r.Result.Resources, r.Result.Cacheable, at)
	case *messages.ResourceTemplateList:
		return listOf(r, r.Result.ResourceTemplates, r.Result.Cacheable, at)
	}
	return &List{Result: result, At: at}
}

// listOf returns a list of things. A ttlMs of 0 is no hint: the results of older protocols have none.
func listOf[T any](result messages.Result, things []T, hint mcp.Cacheable, at time.Time) *List {
	l := &List{Result: result, Digest: digestOf(things), Items: len(things), At: at, Private: hint.CacheScope == "private"}
	if hint.TTLMs > 0 {
		l.Until = at.Add(time.Duration(hint.TTLMs) * time.Millisecond)
	}
	return l
}

// digestOf returns a digest of what was listed, in whatever order.
func digestOf[T any](things []T) string {
	var sums []string
	for _, thing := range things {
		text, err := json.Marshal(thing)
		if err != nil {
			text = fmt.Append(nil, err)
		}
		sums = append(sums, fmt.Sprintf("%x", sha256.Sum256(text)))
	}
	slices.Sort(sums)
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(sums, " "))))
}

// Copy returns a result for one asker, who may change it, but not what the schemas and the metadata in it refer to.
func (l *List) Copy(from *messages.Listing) messages.Result {
	receipt := *l.Result.GetReceipt()
	if from.Shared {
		receipt.Generation, receipt.Attempt, receipt.Replayed = 0, 0, false
	}
	switch r := l.Result.(type) {
	case *messages.ToolList:
		result := *r.Result
		result.Tools = copies(result.Tools)
		return &messages.ToolList{Receipt: receipt, Result: &result, Listing: from}
	case *messages.PromptList:
		result := *r.Result
		result.Prompts = copies(result.Prompts)
		return &messages.PromptList{Receipt: receipt, Result: &result, Listing: from}
	case *messages.ResourceList:
		result := *r.Result
		result.Resources = copies(result.Resources)
		return &messages.ResourceList{Receipt: receipt, Result: &result, Listing: from}
	case *messages.ResourceTemplateList:
		result := *r.Result
		result.ResourceTemplates = copies(result.ResourceTemplates)
		return &messages.ResourceTemplateList{Receipt: receipt, Result: &result, Listing: from}
	}
	return l.Result
}

// copies returns copies of things.
func copies[T any](things []*T) []*T {
	all := make([]*T, len(things))
	for i, thing := range things {
		if thing != nil {
			copied := *thing
			all[i] = &copied
		}
	}
	return all
}
