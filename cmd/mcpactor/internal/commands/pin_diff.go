package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/aymanbagabas/go-udiff"
	"golang.org/x/text/unicode/norm"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/internal/visible"
)

// String returns the difference as one line.
func (c *change) String() string {
	text := seen(c.Of) + ": " + c.What
	if len(c.Fields) > 0 {
		text += " (" + seen(strings.Join(c.Fields, ", ")) + ")"
	}
	switch {
	case c.What == "removed":
		return text
	case c.Refused == "":
		return text + ", and offered"
	case c.Of == ofServer:
		return text + ", and not started"
	case c.What == "added":
		return text + ", and not offered: " + seen(c.Refused)
	}
	return text + ", and not offered"
}

// write writes a difference in words, and below it the texts before and after.
func (c *change) write(out *strings.Builder, s cli.Screen) {
	line := c.String()
	if c.Refused != "" {
		line = s.Paint(bad, line)
	}
	fmt.Fprintf(out, "  %s\n", line)
	if c.What == "removed" {
		return
	}
	members := membersOf(c.Before, c.After)
	delete(members, "name") // the line above has it
	for _, name := range slices.Sorted(maps.Keys(members)) {
		fmt.Fprintf(out, "    %s:%s\n", seen(name), difference(s, members[name][0], members[name][1]))
	}
	if c.Of == "instructions" {
		fmt.Fprintf(out, "   %s\n", difference(s, c.Before, c.After))
	}
}

// difference shows what was removed and added, and some of what is around it: in a text word by word, in other JSON line by line.
func difference(s cli.Screen, before, after json.RawMessage) string {
	var was, is string
	if (before == nil || json.Unmarshal(before, &was) == nil) && (after == nil || json.Unmarshal(after, &is) == nil) {
		return byWords(s, was, is)
	}
	var out strings.Builder
	for _, line := range compare(indented(before), indented(after), 2) {
		text := line.kind + " " + line.text
		switch line.kind {
		case "-":
			text = s.Paint(bad, text)
		case "+":
			text = s.Paint(good, text)
		}
		out.WriteString("\n      " + text)
	}
	return out.String()
}

// byWords returns a text, with what was removed in [-…-], and what was added in {+…+}.
func byWords(s cli.Screen, before, after string) string {
	var out strings.Builder
	for all := compare(wordsIn(before), wordsIn(after), 12); len(all) > 0; {
		n := slices.IndexFunc(all, func(w compared) bool { return w.kind != all[0].kind })
		if n < 0 {
			n = len(all)
		}
		var run []string
		for _, word := range all[:n] {
			run = append(run, word.text)
		}
		text := strings.Join(run, " ")
		switch all[0].kind {
		case "-":
			text = s.Paint(bad, "[-"+text+"-]")
		case "+":
			text = s.Paint(good, "{+"+text+"+}")
		}
		out.WriteString(" " + text)
		all = all[n:]
	}
	return out.String()
}

// compared is a line or a word of a difference: "-" was removed, "+" was added, and " " is the same.
type compared struct{ kind, text string }

// compare returns the lines that differ between two texts, with some around them. They have no line breaks. An ellipsis stands for
// lines that are left out.
func compare(before, after []string, around int) (all []compared) {
	was, is := strings.Join(append(before, ""), "\n"), strings.Join(append(after, ""), "\n")
	diff, _ := udiff.ToUnified("", "", was, udiff.Lines(was, is), around) // the edits are those of this text
	for i, line := range strings.Split(strings.TrimSuffix(diff, "\n"), "\n") {
		switch {
		case i < 2, isStart.MatchString(line): // the names of files
		case line[0] == '@':
			all = append(all, compared{" ", "…"})
		default:
			all = append(all, compared{line[:1], line[1:]})
		}
	}
	return all
}

// isStart matches what is in front of the first line of a text.
var isStart = regexp.MustCompile(`^@@ -[01][, ]`)

// wordsIn returns the words of a text, in which all can be seen.
func wordsIn(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.ReplaceAll(seen(text), "‹U+000A›", " ↵ "), " ")
}

// indented returns the lines of JSON, or none for nothing, in which all can be seen.
func indented(text json.RawMessage) (lines []string) {
	var out bytes.Buffer
	if text == nil || json.Indent(&out, text, "", "  ") != nil {
		return nil
	}
	for line := range strings.SplitSeq(out.String(), "\n") {
		lines = append(lines, seen(line))
	}
	return lines
}

// letters matches a word without its punctuation.
var letters = regexp.MustCompile(`[\pL\pM]+`)

// alike are scripts with letters that look like Latin ones, and marks.
var alike = []*unicode.RangeTable{unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Cyrillic, unicode.Greek, unicode.Lisu, unicode.Mn}

// seen returns a text in which all can be seen in which it may differ from one that looks the same: what is invisible, variants of letters, and
// letters of other scripts in a Latin word.
func seen(text string) string {
	return letters.ReplaceAllStringFunc(visible.Escape(text), func(word string) string {
		isLatin := strings.ContainsFunc(word, func(r rune) bool { return r < unicode.MaxLatin1 })
		var all strings.Builder
		for _, r := range word {
			if isLatin && unicode.In(r, alike...) || norm.NFKC.String(string(r)) != string(r) {
				fmt.Fprintf(&all, "‹%U›", r)
			} else {
				all.WriteRune(r)
			}
		}
		return all.String()
	})
}
