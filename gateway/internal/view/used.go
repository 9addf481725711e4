package view

import (
	"cmp"
	"slices"
	"time"
)

// lastUsed returns the IDs of the n tools that clients have used last.
func lastUsed(tools []Tool, used func(server string) map[string]time.Time, n int) (ids []string) {
	type use struct {
		id string
		at time.Time
	}
	var all []use
	times := map[string]map[string]time.Time{}
	for _, tool := range tools {
		if _, known := times[tool.Server]; !known {
			times[tool.Server] = used(tool.Server)
		}
		if at, known := times[tool.Server][tool.Name]; known {
			all = append(all, use{tool.ID, at})
		}
	}
	slices.SortFunc(all, func(a, b use) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.id, b.id)) })
	for _, one := range all[:min(n, len(all))] {
		ids = append(ids, one.id)
	}
	return ids
}
