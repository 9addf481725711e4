package debug

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpactor/mcpactor/messages"
)

// pageSize is how many sessions a page lists.
const pageSize = 100

// query is what the page is asked to show: the filter, the order and the page.
type query struct {
	Text   string // part of a scope, a server, a tenant or a cause, in lower case
	Server string
	Member string
	State  messages.State
	Sort   string // the id of a column
	Down   bool   // in descending order
	Page   int    // from 1
}

// maxText bounds a text of a query, in bytes. It is more than any scope has. Each page repeats the
// text in all of its references.
const maxText = 2048

// parseQuery reads a query. What is not understood, and what is too long, is left out.
func parseQuery(values url.Values) query {
	q := query{
		Text: bounded(strings.ToLower(strings.TrimSpace(values.Get("q")))), Server: bounded(values.Get("server")),
		Member: bounded(values.Get("member")),
		State:  messages.State(bounded(values.Get("state"))), Sort: values.Get("sort"), Page: 1,
	}
	q.Sort, q.Down = strings.CutPrefix(q.Sort, "-")
	if columnOf(q.Sort) == nil {
		q.Sort, q.Down = columns[0].ID, false
	}
	if page, err := strconv.Atoi(values.Get("page")); err == nil && page > 1 {
		q.Page = page
	}
	return q
}

func bounded(text string) string {
	if len(text) > maxText {
		return ""
	}
	return text
}

// Order returns the order as a reference says it: empty for the default.
func (q query) Order() string {
	switch {
	case q.Down:
		return "-" + q.Sort
	case q.Sort == columns[0].ID:
		return ""
	}
	return q.Sort
}

// URL returns the reference to the page that shows this.
func (q query) URL() string {
	values := url.Values{}
	set := func(name, value string) {
		if value != "" {
			values.Set(name, value)
		}
	}
	set("q", q.Text)
	set("server", q.Server)
	set("member", q.Member)
	set("state", string(q.State))
	set("sort", q.Order())
	if q.Page > 1 {
		set("page", strconv.Itoa(q.Page))
	}
	return "?" + values.Encode()
}

// sessionURL returns the reference to the page of a session.
func sessionURL(key messages.Key) string {
	return "session?" + url.Values{"server": {key.Server}, "scope": {key.Scope}}.Encode()
}

// column is a column of the table of sessions.
type column struct {
	ID, Title string
	Numeric   bool // its numbers are aligned, and the first click sorts the largest first
	compare   func(a, b *messages.SessionSnapshot) int
}

// columns are the columns of the table of sessions, in their order.
var columns = []column{
	{"scope", "Scope", false, byField(func(s *messages.SessionSnapshot) string { return s.Key.Scope })},
	{"server", "Server", false, byField(func(s *messages.SessionSnapshot) string { return s.Key.Server })},
	{"member", "Member", false, byField(func(s *messages.SessionSnapshot) string { return s.Supervisor })},
	{"tenant", "Tenant", false, byField(func(s *messages.SessionSnapshot) string { return s.Tenant })},
	{"state", "State", false, func(a, b *messages.SessionSnapshot) int {
		return cmp.Or(slices.Index(states, a.State)-slices.Index(states, b.State), b.RetryAt.Compare(a.RetryAt))
	}},
	{"generation", "Generation", true, byField(func(s *messages.SessionSnapshot) uint64 { return s.Generation })},
	{"inflight", "In flight", true, byField(func(s *messages.SessionSnapshot) int { return s.Outstanding - s.Waiting })},
	{"waiting", "Waiting", true, byField(func(s *messages.SessionSnapshot) int { return s.Waiting })},
	{"calls", "Calls", true, byField(func(s *messages.SessionSnapshot) uint64 { return s.Calls })},
	{"restarts", "Restarts", true, byField(func(s *messages.SessionSnapshot) int { return int(s.Restarts) })},
	{"used", "Last used", true, func(a, b *messages.SessionSnapshot) int { return a.LastUsed.Compare(b.LastUsed) }},
	{"fault", "Last fault", false, byField(func(s *messages.SessionSnapshot) string { return s.Cause })},
}

// states are the states of a session in the order in which the page sorts them: first those
// that need attention.
var states = []messages.State{
	messages.StateBroken, messages.StateDraining, messages.StateConnecting, messages.StateWaiting, messages.StateReady,
}

// byField returns a comparison by one field.
func byField[F cmp.Ordered](field func(*messages.SessionSnapshot) F) func(a, b *messages.SessionSnapshot) int {
	return func(a, b *messages.SessionSnapshot) int { return cmp.Compare(field(a), field(b)) }
}

// columnOf returns the column with an id, or nil.
func columnOf(id string) *column {
	i := slices.IndexFunc(columns, func(c column) bool { return c.ID == id })
	if i < 0 {
		return nil
	}
	return &columns[i]
}

// selects reports whether a session passes the filter.
func (q query) selects(s *messages.SessionSnapshot) bool {
	return (q.State == "" || s.State == q.State) && (q.Server == "" || s.Key.Server == q.Server) && (q.Member == "" || s.Supervisor == q.Member) &&
		(q.Text == "" || contains(s.Key.Scope, q.Text) || contains(s.Key.Server, q.Text) || contains(s.Tenant, q.Text) || contains(s.Cause, q.Text))
}

// selectsEvent reports whether events with a stamp pass the filter, which knows no state of
// them.
func (q query) selectsEvent(stamp messages.Stamp) bool {
	key := stamp.Key
	return (q.Server == "" || key.Server == q.Server) && (q.Member == "" || stamp.Supervisor == q.Member) && (q.Text == "" || contains(key.Scope, q.Text) || contains(key.Server, q.Text))
}

func contains(text, part string) bool { return strings.Contains(strings.ToLower(text), part) }

// apply returns the sessions of the page, how many pass the filter, and how many pages they
// have. It sets the page to one that exists. The sessions are sorted by key.
func (q *query) apply(sessions []messages.SessionSnapshot) (page []*messages.SessionSnapshot, matching, pages int) {
	selected := make([]*messages.SessionSnapshot, 0, len(sessions))
	for i := range sessions {
		if q.selects(&sessions[i]) {
			selected = append(selected, &sessions[i])
		}
	}
	compare := columnOf(q.Sort).compare
	slices.SortStableFunc(selected, func(a, b *messages.SessionSnapshot) int {
		if q.Down {
			return compare(b, a)
		}
		return compare(a, b)
	})
	matching = len(selected)
	pages = max(1, (matching+pageSize-1)/pageSize)
	q.Page = min(q.Page, pages)
	first := (q.Page - 1) * pageSize
	return selected[first:min(first+pageSize, matching)], matching, pages
}
