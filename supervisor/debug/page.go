package debug

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcpactor/mcpactor/internal/toolsize"
	"github.com/mcpactor/mcpactor/internal/visible"
	"github.com/mcpactor/mcpactor/messages"
)

//go:embed assets
var assets embed.FS

// pages are the templates. Each value is put in its place by package html/template, as the
// text that it is; none is marked as safe.
var pages = template.Must(template.New("").Funcs(template.FuncMap{"show": show, "short": func(text string) string { return visible.Shorten(show(text)) }}).
	ParseFS(assets, "assets/*.html"))

// shownEvents is how many events the page of all sessions lists.
const shownEvents = 50

// maxReasons is how many reasons the page has for handles of one kind that are left.
const maxReasons = 3

// asset serves an embedded file.
func asset(name, contentType string) http.HandlerFunc {
	content, _ := assets.ReadFile("assets/" + name) // that it is there, a test checks
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(content)
	}
}

// view is what a page shows, of a snapshot. Its parts are the templates that live updates
// replace.
type view interface {
	parts() []string
}

// frame is common to both pages.
type frame struct {
	Title   string
	Live    string // the reference to the live updates
	At      moment
	JSON    string // the reference to the same data as JSON
	Actions bool
	Cluster bool // the snapshot has members
}

// index is the page of all sessions.
type index struct {
	frame
	Query    query
	States   []messages.State
	Names    []string // of the servers
	Figures  []figure
	Counters []figure
	Share    string // of the slots that are in use, in percent
	Members  []memberRow
	Servers  []serverRow
	Handles  bool // some server declares handles
	Headers  []header
	Sessions []sessionRow
	Range    string // says which sessions these are
	Page     int
	Pages    int
	Previous string
	Next     string
	Events   []eventRow

	Approvals []waitingRow // of the calls that wait for an approval, when the page was loaded
	Approving string       // how many they are
}

func (v *index) parts() []string {
	if v.Cluster {
		return []string{"supervisor", "members", "servers", "sessions", "events"}
	}
	return []string{"supervisor", "servers", "sessions", "events"}
}

type figure struct{ Name, Value, Of string }

// serverRow is a server as the page shows it.
type serverRow struct {
	Name     string
	URL      string // of the page with the sessions of the server
	Health   messages.Health
	Tone     tone
	Since    moment
	RetryAt  moment
	Cause    string
	States   []stateCount
	InFlight string
	Waiting  string
	Replies  []figure
	Times    []histogram
	Lists    []listRow
	Handles  []handleRow
}

// handleRow is what is known of one kind of handles.
type handleRow struct {
	Mint   string
	Counts []figure
	Left   []figure // the most frequent reasons
}

// listRow is what the catalogue knows of one kind of list.
type listRow struct {
	Kind, Items, Scopes string
	Size                string // of the tools, or empty
	Since               moment
	Stale               bool
}

type stateCount struct {
	State messages.State
	Tone  tone
	Count string
}

// memberRow is a member of a cluster as the page shows it.
type memberRow struct {
	Name     string
	URL      string // of the page with the sessions of the member
	ID       string // since it has last joined
	Address  string
	Self     bool
	State    string
	Tone     tone
	Sessions string
	Open     string
	Cap      string
}

// header is the header of a column of sessions.
type header struct {
	ID, Title, URL string
	Numeric        bool
	Order          string // ascending or descending, or empty
}

// sessionRow is a session as the page shows it.
type sessionRow struct {
	Key        messages.Key
	URL        string
	ServerURL  string
	Member     string // of the cluster, or the id of the supervisor
	MemberURL  string
	Tenant     string
	Pinned     bool
	State      messages.State
	Tone       tone
	RetryAt    moment
	Generation string
	InFlight   string
	Waiting    string
	Calls      string
	Restarts   string
	LastUsed   moment
	Cause      string
	Protocol   string
	Stateless  bool
}

var healthTones = map[messages.Health]tone{messages.HealthUp: good, messages.HealthDown: bad, messages.HealthUnknown: neutral}

var stateTones = map[messages.State]tone{
	messages.StateReady: good, messages.StateConnecting: working, messages.StateWaiting: neutral,
	messages.StateDraining: warning, messages.StateBroken: bad,
}

// index returns the page of all sessions. In a live one, texts that change with time only
// are left to the browser.
func (h *Handler) index(snap *messages.Snapshot, q query, live bool) *index {
	now := snap.Time
	if live {
		now = time.Time{}
	}
	listed, matching, pages := q.apply(snap.Sessions)
	v := &index{
		frame: frame{Title: "MCP sessions", Live: "live", At: second(snap.Time), Actions: h.cfg.Actions, Cluster: len(snap.Members) > 0},
		Query: q, States: states, Page: q.Page, Pages: pages,
		Events: rows(h.events.latest(shownEvents, q.selectsEvent)),
	}
	v.JSON = q.URL() + "&format=json"
	inFlight := 0
	tenants := slices.ContainsFunc(snap.Sessions, func(s messages.SessionSnapshot) bool { return s.Tenant != "" })
	for i := range snap.Servers {
		inFlight += snap.Servers[i].Load.InFlight
		v.Names = append(v.Names, snap.Servers[i].Name)
		v.Servers = append(v.Servers, serverRowOf(&snap.Servers[i], now))
		v.Handles = v.Handles || len(snap.Servers[i].Handles) > 0
	}
	for i := range snap.Members {
		v.Members = append(v.Members, memberRowOf(&snap.Members[i]))
	}
	v.Share = fmt.Sprintf("%.2f%%", 100*float64(snap.Open)/float64(max(1, snap.Cap)))
	v.Figures = []figure{
		{"Open sessions", count(snap.Open), "of " + count(snap.Cap)},
		{"Sessions, open or not", count(snap.Total), ""},
		{"Calls in flight", count(inFlight), ""},
		{"Calls waiting", count(snap.Waiting), ""},
	}
	v.Counters = countersOf(&snap.Counters)
	for _, c := range columns {
		if c.ID == "tenant" && !tenants || c.ID == "member" && !v.Cluster {
			continue
		}
		v.Headers = append(v.Headers, headerOf(c, q))
	}
	for _, s := range listed {
		v.Sessions = append(v.Sessions, sessionRowOf(s, now))
	}
	v.Range = rangeOf(q, len(listed), matching, snap.Total)
	previous, next := q, q
	previous.Page, next.Page = max(1, q.Page-1), min(pages, q.Page+1)
	v.Previous, v.Next = previous.URL(), next.URL()
	return v
}

// rangeOf says which sessions are listed.
func rangeOf(q query, listed, matching, total int) string {
	switch {
	case total == 0:
		return "No sessions yet: a session opens with its first call"
	case matching == 0:
		return "None of " + count(total) + " sessions matches"
	}
	first := (q.Page-1)*pageSize + 1
	text := count(first) + "–" + count(first+listed-1) + " of " + count(matching)
	if matching < total {
		return text + " sessions that match, " + count(total) + " in all"
	}
	return text + " sessions"
}

func headerOf(c column, q query) header {
	to := q
	to.Sort, to.Page = c.ID, 1
	shown := header{ID: c.ID, Title: c.Title, Numeric: c.Numeric}
	if to.Down = c.Numeric; q.Sort == c.ID {
		to.Down = !q.Down
		shown.Order = "ascending"
		if q.Down {
			shown.Order = "descending"
		}
	}
	shown.URL = to.URL()
	return shown
}

func countersOf(c *messages.Counters) []figure {
	return []figure{
		{"Calls", count(c.Calls), ""},
		{"Dials", count(c.Dials), ""},
		{"Opened", count(c.Opened), ""},
		{"Closed", count(c.Closed), ""},
		{"Evicted", count(c.Evicted), ""},
		{"Expired", count(c.Expired), ""},
		{"Lost", count(c.Lost), ""},
		{"Restarts", count(c.Restarts), ""},
		{"Given up", count(c.GaveUp), ""},
		{"Replayed calls", count(c.Replayed), ""},
		{"Stray answers", count(c.Strays), ""},
		{"Bytes of text skipped", count(c.TextSkipped), ""},
		{"Dropped events", count(c.Dropped), ""},
		{"Dropped log lines", count(c.LinesDropped), ""},
	}
}

func serverRowOf(s *messages.ServerSnapshot, now time.Time) serverRow {
	row := serverRow{
		Name: s.Name, URL: query{Server: s.Name, Sort: columns[0].ID}.URL(), Health: s.Health, Tone: healthTones[s.Health],
		Since: lasting(s.Since, now), RetryAt: in(s.RetryAt, now), Cause: s.Cause,
		InFlight: count(s.Load.InFlight), Waiting: count(s.Load.Waiting),
		Times: []histogram{
			pictureOf("Calls", "Times from call to reply", &s.Load.Durations),
			pictureOf("Waits", "Times from call to first run", &s.Load.Waits),
			pictureOf("Dials", "Times of dials", &s.Load.Dials),
		},
	}
	for _, state := range states {
		if n := s.States[state]; n > 0 {
			row.States = append(row.States, stateCount{state, stateTones[state], count(n)})
		}
	}
	if s.Load.Succeeded > 0 {
		row.Replies = append(row.Replies, figure{Name: "succeeded", Value: count(s.Load.Succeeded)})
	}
	for _, code := range slices.SortedFunc(maps.Keys(s.Load.Failed), func(a, b messages.Code) int {
		return cmp.Or(cmp.Compare(s.Load.Failed[b], s.Load.Failed[a]), cmp.Compare(a, b))
	}) {
		row.Replies = append(row.Replies, figure{Name: string(code), Value: count(s.Load.Failed[code])})
	}
	if s.Load.Bounded > 0 {
		row.Replies = append(row.Replies, figure{Name: "of these beyond bounds", Value: count(s.Load.Bounded)})
	}
	for _, method := range slices.Sorted(maps.Keys(s.Lists)) {
		lists := s.Lists[method]
		kind := strings.ReplaceAll(strings.TrimSuffix(method, "/list"), "/", " ")
		size := ""
		if lists.Bytes > 0 {
			size = count(lists.Bytes) + " bytes, about " + count(toolsize.Tokens(lists.Bytes)) + " tokens"
		}
		row.Lists = append(row.Lists, listRow{kind, count(lists.Items), count(lists.Scopes), size, lasting(lists.Oldest, now), lists.Stale > 0})
	}
	for i := range s.Handles {
		row.Handles = append(row.Handles, handleRowOf(&s.Handles[i]))
	}
	return row
}

// handleRowOf returns a kind of handles as the page shows it. It has no handle, which may be a secret.
func handleRowOf(h *messages.HandleSnapshot) handleRow {
	row := handleRow{Mint: h.Mint, Counts: []figure{{Name: "held", Value: count(h.Held)}}}
	if h.Max > 0 {
		row.Counts[0].Of = "of " + count(h.Max)
	}
	for _, one := range []struct {
		name string
		n    int
	}{{"minting", h.Minting}, {"unanswered", h.Unanswered}, {"releasing", h.Releasing}, {"waiting", h.Waiting}, {"left", h.LeftCount}} {
		if one.n > 0 {
			row.Counts = append(row.Counts, figure{Name: one.name, Value: count(one.n)})
		}
	}
	reasons := map[string]int{}
	for _, left := range h.Left {
		reasons[left.Reason]++
	}
	for _, reason := range slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(reasons[b], reasons[a]), cmp.Compare(a, b))
	}) {
		row.Left = append(row.Left, figure{Name: reason, Value: count(reasons[reason])})
	}
	row.Left = row.Left[:min(len(row.Left), maxReasons)]
	return row
}

// memberRowOf returns a member as the page shows it. What it has is unknown if it has not
// answered.
func memberRowOf(m *messages.MemberSnapshot) memberRow {
	row := memberRow{
		Name: m.Name, URL: memberURL(m.Name), ID: m.ID, Address: m.Address, Self: m.Self, State: "answered", Tone: good,
		Sessions: count(m.Sessions), Open: count(m.Open), Cap: count(m.Cap),
	}
	if m.Leaving {
		row.State, row.Tone = "leaving", warning
	}
	if !m.Answered {
		row.State, row.Tone, row.Sessions, row.Open, row.Cap = "no answer", bad, "", "", ""
	}
	return row
}

// memberURL returns the reference to the page with the sessions of a member.
func memberURL(name string) string { return query{Member: name, Sort: columns[0].ID}.URL() }

func sessionRowOf(s *messages.SessionSnapshot, now time.Time) sessionRow {
	return sessionRow{
		Key: s.Key, URL: sessionURL(s.Key), ServerURL: query{Server: s.Key.Server, Sort: columns[0].ID}.URL(),
		Member: s.Supervisor, MemberURL: memberURL(s.Supervisor), Tenant: s.Tenant, Pinned: s.Pinned, State: s.State, Tone: stateTones[s.State], RetryAt: in(s.RetryAt, now),
		Generation: count(s.Generation), InFlight: count(s.Outstanding - s.Waiting), Waiting: count(s.Waiting), Calls: count(s.Calls),
		Restarts: count(s.Restarts), LastUsed: ago(s.LastUsed, now), Cause: s.Cause, Protocol: s.Protocol, Stateless: s.Stateless,
	}
}

func rows(events []messages.Event) []eventRow {
	all := make([]eventRow, len(events))
	for i, e := range events {
		all[i] = rowOf(e)
	}
	return all
}

// session is the page of one session.
type session struct {
	frame
	Key       messages.Key
	ServerURL string
	Session   *sessionRow // nil if there is none
	Server    *serverRow  // nil if no server of this name is configured
	Timeline  *timeline   // nil without events
	Events    []eventRow
	Kept      int
	InScope   int    // sessions of the scope, on all servers
	URL       string // of this page
	Around    moment // the time that the timeline shows, or empty if it shows all
}

func (*session) parts() []string { return []string{"facts", "timeline", "history"} }

// session returns the page of one session. The timeline shows all events, or those around a
// time that is not zero.
func (h *Handler) session(snap *messages.Snapshot, key messages.Key, around time.Time, live bool) *session {
	now := snap.Time
	if live {
		now = time.Time{}
	}
	events := h.events.latest(maxEvents, func(s messages.Stamp) bool { return s.Key == key })
	v := &session{
		frame: frame{Title: "MCP session " + show(key.Scope) + " on " + key.Server, Live: "session-live", At: second(snap.Time), Actions: h.cfg.Actions, Cluster: len(snap.Members) > 0},
		Key:   key, ServerURL: "./" + query{Server: key.Server, Sort: columns[0].ID}.URL(), Events: rows(events), Kept: maxEvents,
		URL: sessionURL(key),
	}
	if !around.IsZero() {
		v.Around = clock(around)
	}
	v.JSON = v.URL + "&format=json"
	if s := find(snap, key); s != nil {
		row := sessionRowOf(s, now)
		v.Session = &row
	}
	if i := slices.IndexFunc(snap.Servers, func(s messages.ServerSnapshot) bool { return s.Name == key.Server }); i >= 0 {
		row := serverRowOf(&snap.Servers[i], now)
		v.Server = &row
	}
	for i := range snap.Sessions {
		if snap.Sessions[i].Key.Scope == key.Scope {
			v.InScope++
		}
	}
	v.Timeline = timelineOf(events, v.Session != nil, snap.Time, around)
	return v
}

// find returns the session of a key, or nil.
func find(snap *messages.Snapshot, key messages.Key) *messages.SessionSnapshot {
	i, ok := slices.BinarySearchFunc(snap.Sessions, key, func(s messages.SessionSnapshot, key messages.Key) int {
		return s.Key.Compare(key)
	})
	if !ok {
		return nil
	}
	return &snap.Sessions[i]
}

// keyOf returns the key that a page or an action is about.
func keyOf(values url.Values) (messages.Key, error) {
	key := messages.Key{Server: values.Get("server"), Scope: values.Get("scope")}.Normal()
	if key.Server == "" {
		return key, errors.New("server: is empty: name the server of the session")
	}
	return key, key.Validate()
}

// aroundOf returns the time that the timeline of a session is asked to show, or zero for all.
func aroundOf(r *http.Request) time.Time {
	at, _ := time.Parse(time.RFC3339, r.URL.Query().Get("at")) // what is not understood is left out
	return at
}

// serveIndex serves the page of all sessions.
func (h *Handler) serveIndex(w http.ResponseWriter, r *http.Request) {
	snap, err := h.snapshots.get(r.Context())
	if err != nil {
		h.fail(w, r, http.StatusServiceUnavailable, err.Error())
		return
	}
	q := parseQuery(r.URL.Query())
	oldest, total := h.approvals(r.Context())
	if !wantsJSON(r) {
		page := h.index(snap, q, false)
		page.Approvals, page.Approving = waitingRows(oldest, snap.Time), count(total)
		writeTemplate(w, http.StatusOK, "index", page)
		return
	}
	selected := *snap
	listed, matching, pages := q.apply(snap.Sessions)
	selected.Sessions = make([]messages.SessionSnapshot, len(listed))
	for i, s := range listed {
		selected.Sessions[i] = *s
	}
	writeJSON(w, http.StatusOK, struct {
		Snapshot  *messages.Snapshot `json:"snapshot"`
		Matching  int                `json:"matching"`
		Page      int                `json:"page"`
		Pages     int                `json:"pages"`
		Events    []messages.Event   `json:"events"`
		Approvals []waiting          `json:"approvals,omitempty"`
	}{&selected, matching, q.Page, pages, h.events.latest(maxEvents, q.selectsEvent), oldest})
}

// serveSession serves the page of one session.
func (h *Handler) serveSession(w http.ResponseWriter, r *http.Request) {
	key, err := keyOf(r.URL.Query())
	if err != nil {
		h.fail(w, r, http.StatusBadRequest, err.Error())
		return
	}
	snap, err := h.snapshots.get(r.Context())
	if err != nil {
		h.fail(w, r, http.StatusServiceUnavailable, err.Error())
		return
	}
	if !wantsJSON(r) {
		writeTemplate(w, http.StatusOK, "session", h.session(snap, key, aroundOf(r), false))
		return
	}
	writeJSON(w, http.StatusOK, struct {
		Time    time.Time                 `json:"time"`
		Key     messages.Key              `json:"key"`
		Session *messages.SessionSnapshot `json:"session"`
		Events  []messages.Event          `json:"events"`
	}{snap.Time, key, find(snap, key), h.events.latest(maxEvents, func(s messages.Stamp) bool { return s.Key == key })})
}

// outcome is the page that says what was done, or why nothing was.
type outcome struct {
	frame
	Text string
	Back string
}

// fail serves an error.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, status int, text string) {
	if wantsJSON(r) {
		writeJSON(w, status, map[string]string{"error": text})
		return
	}
	writeTemplate(w, status, "outcome", &outcome{frame{Title: http.StatusText(status)}, text, "./"})
}

// wantsJSON reports whether a request asks for JSON.
func wantsJSON(r *http.Request) bool {
	return r.URL.Query().Get("format") == "json" || strings.Contains(r.Header.Get("Accept"), "application/json")
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

func writeTemplate(w http.ResponseWriter, status int, name string, data any) {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, data); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}
