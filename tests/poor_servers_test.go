package tests

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// answerID finds the id in an answer of a raw server.
var answerID = regexp.MustCompile(`"id":([^,]*),`)

// withID changes the ids of answers.
func withID(change func(id string) string) func(string) string {
	return func(answer string) string {
		return answerID.ReplaceAllStringFunc(answer, func(found string) string {
			return `"id":` + change(found[len(`"id":`):len(found)-1]) + ","
		})
	}
}

// odd are servers that are poor or odd, each in one way. There is a client for each of them.
var odd = map[string]habits{
	"plain":                        {},
	"no ping":                      {without: []string{"ping"}},
	"no lists":                     {without: []string{"tools/list"}},
	"no ping and no lists":         {without: []string{"ping", "tools/list"}},
	"no GET":                       {without: []string{"GET"}},
	"no DELETE":                    {without: []string{"DELETE"}},
	"no GET, no DELETE, no ping":   {without: []string{"GET", "DELETE", "ping"}},
	"a byte order mark":            {write: func(answer string) string { return "\ufeff" + answer }},
	"blanks":                       {write: func(answer string) string { return "  " + answer + " \t" }},
	"an array of one":              {write: func(answer string) string { return "[" + answer + "]" }},
	"ids as strings":               {write: withID(func(id string) string { return `"` + id + `"` })},
	"ids as floats":                {write: withID(func(id string) string { return id + ".0" })},
	"ids of 14 digits":             {write: withID(digits(14))},
	"ids of 32 bits":               {refuses: func(msg rawMessage) bool { _, err := strconv.ParseInt(string(msg.ID), 10, 32); return err != nil }},
	"another revision":             {revision: "2024-10-07"},
	"an unknown field":             {write: func(answer string) string { return strings.Replace(answer, `{`, `{"server":"raw",`, 1) }},
	"error: null beside a result":  {write: func(answer string) string { return strings.Replace(answer, `"result"`, `"error":null,"result"`, 1) }},
	"resumable answers":            {resumable: true},
	"answers on the stream":        {onStream: true},
	"no session id":                {noID: true},
	"a session id that changes":    {newIDs: true},
	"no session id, no ping":       {noID: true, without: []string{"ping"}},
	"another revision without GET": {revision: "2024-10-07", without: []string{"GET"}},
}

// digits prints an id as a number with so many significant digits.
func digits(n int) func(string) string {
	return func(id string) string {
		value, err := strconv.ParseFloat(id, 64)
		if err != nil {
			return id
		}
		return strconv.FormatFloat(value, 'g', n, 64)
	}
}

var number = regexp.MustCompile(`\b\d+\b`)

// C11: a server that another client can call works at the first call, after its connection was
// cut between calls and in a call, and after a restart that has forgotten the sessions. The
// call that was cut is answered honestly.
func TestServersThatArePoorOrOddWorkAgainAfterEachOutage(t *testing.T) {
	t.Parallel()
	for name, habits := range odd {
		for _, c := range conditions {
			for i, form := range forgotten {
				if i == 0 && habits.noID || i != 1 && c.name != "restarted" {
					continue // 404 without a session id means a wrong URL
				}
				t.Run(strings.Join([]string{name, c.name, form}, "/"), func(t *testing.T) {
					t.Parallel()
					overRawHTTP(t, habits, func(p *plain) {
						p.noLists = strings.Contains(name, "no lists")
						c.happen(p, refusalOf(t, form))
						want := c.want
						if (habits.resumable || habits.onStream) && c.name == "cut in a call" {
							want = strings.Replace(want, "lost?", "5", 1)
						}
						if habits.noID && i == 2 { // an answer with the id of the call, and no other session to compare it with
							want = strings.Replace(want, "tools 1 2", "tools lost? 1", 1)
						}
						p.requireOutcomes(want, 3*time.Second)
					})
				})
			}
		}
	}
}

// requireOutcomes checks what came out. The counters of the server may have begun again.
func (p *plain) requireOutcomes(want string, limit time.Duration) {
	p.t.Helper()
	want = number.ReplaceAllString(want, "n")
	if got := number.ReplaceAllString(strings.Join(p.said, " "), "n"); got != want || p.slowest > limit {
		p.t.Errorf("got %s in %v, want %s in %v", strings.Join(p.said, " "), p.slowest, want, limit)
	}
}
