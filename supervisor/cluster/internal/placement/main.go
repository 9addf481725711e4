// Command placement simulates how Proto.Actor's cluster places shards on members, and what its
// gossip costs, and prints the tables of docs/scale.md:
//
//	go run ./supervisor/cluster/internal/placement                # prints all tables
//	go run ./supervisor/cluster/internal/placement docs/scale.md  # writes them into the page
//	go run ./supervisor/cluster/internal/placement docs/scale.md time gossip  # only these
//
// The tables of placement are the same in each run. Those with times and memory are measurements.
package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// tables are all tables by their names in the page. The quick ones leave out what takes seconds.
var tables = []struct {
	name   string
	fixed  bool // the same in each run
	format func(quick bool) string
}{
	{"plan", true, planTable},
	{"load", true, loadTable},
	{"leave", true, leaveTable},
	{"addresses", true, addressTable},
	{"identities", true, identityTable},
	{"balance", true, balanceTable},
	{"moves", true, moveTable},
	{"time", false, timeTable},
	{"silence", true, silenceTable},
	{"gossip", false, gossipTable},
}

func main() {
	page := ""
	if len(os.Args) > 1 {
		text, err := os.ReadFile(os.Args[1])
		if err != nil {
			fail(err)
		}
		page = string(text)
	}
	for _, table := range tables {
		if len(os.Args) > 2 && !slices.Contains(os.Args[2:], table.name) {
			continue
		}
		text := table.format(false)
		fmt.Fprintf(os.Stdout, "%s\n\n%s\n", table.name, text)
		if page != "" {
			page = replace(page, table.name, text)
		}
	}
	if page != "" {
		if err := os.WriteFile(os.Args[1], []byte(page), 0o644); err != nil {
			fail(err)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// block matches a table in the page.
func block(name string) *regexp.Regexp {
	return regexp.MustCompile(`(?s)<!-- placement: ` + name + ` -->\n(.*?)<!-- placement end -->`)
}

// replace puts a table in its place in a page.
func replace(page, name, text string) string {
	return block(name).ReplaceAllLiteralString(page, "<!-- placement: "+name+" -->\n"+text+"<!-- placement end -->")
}

// markdown formats a table. The first columns are text, the others are numbers.
func markdown(text int, head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	b.WriteString("|" + strings.Repeat("---|", text) + strings.Repeat("---:|", len(head)-text) + "\n")
	for _, row := range rows {
		line(row)
	}
	return b.String()
}

// count formats a number with commas.
func count(n int) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
