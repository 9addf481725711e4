package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// query is a query of the dashboard or of the rules.
type query struct {
	where, text string
	shown       []string // labels that its legend or its annotations show
}

// shown finds the labels in a legend of Grafana and in an annotation of Prometheus.
var shown = regexp.MustCompile(`\{\{ *(?:\$labels\.)?(\w+) *\}\}`)

func shownIn(text string) (names []string) {
	for _, found := range shown.FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	return names
}

// dashboardQueries returns the queries of the dashboard, with values in place of its variables.
func dashboardQueries(t *testing.T) (all []query) {
	t.Helper()
	data, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	var dashboard struct {
		Templating struct {
			List []struct {
				Name  string
				Type  string
				Query json.RawMessage
			}
		}
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	require.NoError(t, json.Unmarshal(data, &dashboard))
	for _, v := range dashboard.Templating.List {
		if v.Type != "query" {
			continue
		}
		var q struct{ Query string }
		require.NoError(t, json.Unmarshal(v.Query, &q))
		values := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(q.Query)
		require.NotNil(t, values, q.Query)
		all = append(all, query{"variable " + v.Name, "count by (" + values[2] + ") (" + values[1] + ")", nil})
	}
	values := strings.NewReplacer("$__rate_interval", "1m", "$server", ".*")
	for _, panel := range dashboard.Panels {
		if panel.Type == "row" {
			continue
		}
		require.NotEmpty(t, panel.Targets, panel.Title)
		for _, target := range panel.Targets {
			all = append(all, query{"panel " + panel.Title, values.Replace(target.Expr), shownIn(target.LegendFormat)})
		}
	}
	return all
}

// ruleQueries returns the queries of the rules.
func ruleQueries(t *testing.T) (all []query) {
	t.Helper()
	data, err := os.ReadFile("alerts.yml")
	require.NoError(t, err)
	groups, errs := rulefmt.Parse(data, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
	require.Empty(t, errs)
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			q := query{"rule " + rule.Alert, rule.Expr, nil}
			for _, text := range rule.Annotations {
				q.shown = append(q.shown, shownIn(text)...)
			}
			all = append(all, q)
		}
	}
	return all
}

// series are the values of each label, by the name of the series.
type series map[string]map[string][]string

// scrape returns the series of a page of metrics.
func scrape(t *testing.T, url string) series {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	text := expfmt.NewTextParser(model.UTF8Validation)
	families, err := text.TextToMetricFamilies(resp.Body)
	require.NoError(t, err)
	all := series{}
	for name, family := range families {
		names := []string{name}
		if family.GetType().String() == "HISTOGRAM" {
			names = []string{name + "_bucket", name + "_count", name + "_sum"}
		}
		for i, name := range names {
			if all[name] == nil {
				all[name] = map[string][]string{}
			}
			if i == 0 && len(names) > 1 {
				all[name]["le"] = []string{"+Inf"}
			}
			for _, m := range family.Metric {
				for _, label := range m.Label {
					all[name][label.GetName()] = append(all[name][label.GetName()], label.GetValue())
				}
			}
		}
	}
	return all
}

// missing returns what a query names that is not there: series, labels, and values that a label
// must have.
func (s series) missing(t *testing.T, q query) (missing []string) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(q.text)
	require.NoError(t, err, "%s: %s", q.where, q.text)
	need := func(ok bool, what string) {
		if !ok {
			missing = append(missing, q.where+": "+what)
		}
	}
	selectors := 0
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			selectors++
			found, ok := s[n.Name]
			need(ok, n.Name)
			for _, m := range n.LabelMatchers {
				if m.Name == model.MetricNameLabel {
					continue
				}
				need(found[m.Name] != nil, n.Name+"{"+m.Name+"}")
				if m.Type == labels.MatchEqual {
					need(slices.Contains(found[m.Name], m.Value), n.Name+"{"+m.String()+"}")
				}
			}
		case *parser.AggregateExpr:
			for _, name := range n.Grouping {
				for selector := range s.selectedBy(n.Expr) {
					need(s[selector][name] != nil, "by ("+name+") of "+selector)
				}
			}
		}
		return nil
	})
	need(selectors > 0, "no series at all")
	names := s.outputOf(expr)
	for _, name := range q.shown {
		need(names[name], "the label "+name+" in its text")
	}
	return missing
}

// selectedBy returns the names of the series in an expression.
func (s series) selectedBy(expr parser.Expr) map[string]bool {
	names := map[string]bool{}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if n, ok := node.(*parser.VectorSelector); ok {
			names[n.Name] = true
		}
		return nil
	})
	return names
}

// outputOf returns the labels of the result of an expression.
func (s series) outputOf(expr parser.Expr) map[string]bool {
	names := map[string]bool{}
	switch e := expr.(type) {
	case *parser.AggregateExpr:
		for _, name := range e.Grouping {
			names[name] = true
		}
	case *parser.VectorSelector:
		for name := range s[e.Name] {
			names[name] = true
		}
	case *parser.MatrixSelector:
		return s.outputOf(e.VectorSelector)
	case *parser.ParenExpr:
		return s.outputOf(e.Expr)
	case *parser.BinaryExpr:
		return s.outputOf(e.LHS)
	case *parser.Call:
		return s.outputOf(e.Args[len(e.Args)-1])
	}
	return names
}

// The program runs until everything that the queries name is there.
func TestEverySeriesAndLabelOfTheDashboardAndTheRulesExists(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	urls, ended := make(chan string, 1), make(chan error, 1)
	traces := new(countingWriter)
	p := program{listen: "127.0.0.1:0", traces: traces, agents: 10, pause: 40 * time.Millisecond, ready: func(url string) { urls <- url }}
	go func() { ended <- p.run(ctx) }()
	var url string
	select {
	case url = <-urls:
	case err := <-ended:
		require.NoError(t, err)
	}
	queries := append(dashboardQueries(t), ruleQueries(t)...)
	require.Greater(t, len(queries), 20)
	var missing []string
	var found series
	require.Eventually(t, func() bool {
		found, missing = scrape(t, url), nil
		for _, q := range queries {
			missing = append(missing, found.missing(t, q)...)
		}
		return len(missing) == 0
	}, time.Minute, 200*time.Millisecond, "not there: %v", &missing)

	used := map[string]bool{}
	for _, q := range queries {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(q.text)
		require.NoError(t, err)
		maps.Copy(used, found.selectedBy(expr))
	}
	for name := range found {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count"), "_sum")
		if name != "target_info" && !used[name] {
			require.True(t, used[base+"_bucket"] || used[base+"_count"], "the dashboard shows nothing of %s", name)
		}
	}

	for _, wrong := range []string{
		`rate(mcpactor_nothing_total[1m])`, `mcpactor_server_up{scope="a"}`, `sum by (scope) (mcpactor_call_waiting)`, `mcpactor_session_count{mcpactor_state="lost"}`, `1`,
	} {
		require.NotEmpty(t, found.missing(t, query{"wrong", wrong, nil}), "the test notices what is missing")
	}
	require.NotEmpty(t, found.missing(t, query{"wrong", `sum(mcpactor_server_up)`, []string{"mcpactor_server"}}))

	cancel()
	require.NoError(t, <-ended)
	require.Positive(t, traces.spans, "the spans are written")
}

// countingWriter counts the spans of the exporter, which writes one at a time.
type countingWriter struct{ spans int }

func (w *countingWriter) Write(b []byte) (int, error) {
	w.spans++
	return io.Discard.Write(b)
}
