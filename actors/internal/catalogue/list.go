package catalogue

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/results"
	"github.com/mcpactor/mcpactor/internal/toolsize"
	"github.com/mcpactor/mcpactor/messages"
)

// ListOf returns the result of an operation that lists, and that is from there.
func ListOf(result messages.Result, from *messages.Listing) *List {
	switch r := result.(type) {
	case *messages.ToolList:
		l := listOf(r, r.Result.Tools, r.Result.Cacheable, from)
		for _, tool := range r.Result.Tools {
			if tool != nil {
				l.Bytes += toolsize.Of(tool.Name, tool.Description, tool.InputSchema)
			}
		}
		return l
	case *messages.PromptList:
		return listOf(r, r.Result.Prompts, r.Result.Cacheable, from)
	case *messages.ResourceList:
		return listOf(r, r.Result.Resources, r.Result.Cacheable, from)
	case *messages.ResourceTemplateList:
		return listOf(r, r.Result.ResourceTemplates, r.Result.Cacheable, from)
	}
	return &List{Result: result, Receipt: *result.GetReceipt(), At: from.At}
}

// listOf returns a list of things. A ttlMs of 0 is no hint: the results of older protocols have none.
func listOf[T any](result messages.Result, things []T, hint mcp.Cacheable, from *messages.Listing) *List {
	l := &List{
		Result: result, Receipt: *result.GetReceipt(), Server: from.Server, Introduction: from.Verbatim, Digest: digestOf(things), Items: len(things),
		At: from.At, Private: hint.CacheScope == "private",
	}
	if hint.TTLMs > 0 {
		l.Until = l.At.Add(time.Duration(hint.TTLMs) * time.Millisecond)
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
	receipt := l.Receipt
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

// stored is a list in the store.
type stored struct {
	At           time.Time             `json:"at"`
	Server       *mcp.InitializeResult `json:"server,omitempty"`
	Result       json.RawMessage       `json:"result"`
	Verbatim     json.RawMessage       `json:"verbatim,omitempty"`
	Introduction json.RawMessage       `json:"introduction,omitempty"`
	Odd          []string              `json:"odd,omitempty"`
	Incomplete   string                `json:"incomplete,omitempty"`
}

// Encode returns the list for a store.
func (l *List) Encode() (json.RawMessage, error) {
	var result mcp.Result
	switch r := l.Result.(type) {
	case *messages.ToolList:
		result = r.Result
	case *messages.PromptList:
		result = r.Result
	case *messages.ResourceList:
		result = r.Result
	case *messages.ResourceTemplateList:
		result = r.Result
	default:
		return nil, fmt.Errorf("%T is no list", l.Result)
	}
	data, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	receipt := l.Result.GetReceipt()
	return json.Marshal(stored{l.At, l.Server, data, receipt.Verbatim, l.Introduction, receipt.Odd, receipt.Incomplete})
}

// Decode returns the list of a method from a store, or nil if it cannot be read.
func Decode(method string, data json.RawMessage) *List {
	var s stored
	if json.Unmarshal(data, &s) != nil {
		return nil
	}
	decoded, _, err := results.Decode(method, s.Result)
	if err != nil {
		return nil
	}
	receipt := messages.Receipt{AsSent: messages.AsSent{Verbatim: s.Verbatim}, Odd: s.Odd, Incomplete: s.Incomplete}
	var result messages.Result
	switch r := decoded.(type) {
	case *mcp.ListToolsResult:
		result = &messages.ToolList{Receipt: receipt, Result: r}
	case *mcp.ListPromptsResult:
		result = &messages.PromptList{Receipt: receipt, Result: r}
	case *mcp.ListResourcesResult:
		result = &messages.ResourceList{Receipt: receipt, Result: r}
	case *mcp.ListResourceTemplatesResult:
		result = &messages.ResourceTemplateList{Receipt: receipt, Result: r}
	default:
		return nil
	}
	l := ListOf(result, &messages.Listing{Server: s.Server, AsSent: messages.AsSent{Verbatim: s.Introduction}, At: s.At})
	l.Stored = true
	return l
}
