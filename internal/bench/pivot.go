package bench

import (
	"slices"
	"strings"
)

// pivot is the cases of a scenario that differ in their last parameter only: a table
// with a column for each of its values.
type pivot struct {
	// title is the scenario with the parameters that they have in common.
	title   string
	columns []*CaseResult
	// rows are the names of the contenders.
	rows []string
}

// pivots returns the cases of a scenario as tables.
func (r *Report) pivots(scenario string) (all []*pivot) {
	for i := range r.Cases {
		c := &r.Cases[i]
		if c.Scenario != scenario {
			continue
		}
		title := scenario
		for _, p := range c.Params[:max(0, len(c.Params)-1)] {
			title += " " + p.Name + "=" + p.Value
		}
		if len(all) == 0 || all[len(all)-1].title != title {
			all = append(all, &pivot{title: title})
		}
		p := all[len(all)-1]
		p.columns = append(p.columns, c)
		for _, one := range c.Contenders {
			if !slices.Contains(p.rows, one.Name) {
				p.rows = append(p.rows, one.Name)
			}
		}
	}
	return all
}

// label returns the parameter that a column has alone.
func (c *CaseResult) label() string {
	if len(c.Params) == 0 {
		return c.Unit
	}
	last := c.Params[len(c.Params)-1]
	return last.Name + "=" + last.Value
}

// fileName returns the title as a name for a file.
func (p *pivot) fileName() string {
	return strings.NewReplacer(" transport=", "-", " ", "-", "=", "-").Replace(p.title)
}

// scenarios returns the names of all scenarios, in order.
func (r *Report) scenarios() (all []string) {
	for _, c := range r.Cases {
		if !slices.Contains(all, c.Scenario) {
			all = append(all, c.Scenario)
		}
	}
	return all
}
