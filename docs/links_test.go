package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// documents are the patterns of the documents whose links are checked.
var documents = []string{"../*.md", "*.md", "../.github/*.md", "../.github/*/*.md"}

func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	checked := 0
	for _, pattern := range documents {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			for _, link := range linksOf(read(t, file)) {
				require.NoError(t, follow(t, file, link), "%s links to %s", file, link)
				checked++
			}
		}
	}
	require.NotZero(t, checked)
}

// follow reports what is wrong with a link. Those to other sites are not followed.
func follow(t *testing.T, from, link string) error {
	t.Helper()
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return nil
	}
	target, anchor, hasAnchor := strings.Cut(link, "#")
	file := from
	if target != "" {
		file = filepath.Join(filepath.Dir(from), filepath.FromSlash(target))
	}
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return err
	case !hasAnchor:
		return nil
	case info.IsDir() || filepath.Ext(file) != ".md":
		return fmt.Errorf("only a document has anchors")
	case !anchorsOf(read(t, file))[anchor]:
		return fmt.Errorf("there is no heading for #%s", anchor)
	}
	return nil
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

var (
	block     = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	code      = regexp.MustCompile("`[^`\n]+`")
	target    = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)`)                   // [text](target) and ![text](target)
	reference = regexp.MustCompile(`(?m)^ {0,3}\[[^\]^]+\]:\s+<?([^\s>]+)`) // [name]: target
	attribute = regexp.MustCompile(`<(?:a|img|source)\b[^>]*?(?:href|src|srcset)="([^"]+)"`)
	heading   = regexp.MustCompile(`(?m)^#{1,6} +(.+?)[ #]*$`)
	named     = regexp.MustCompile(`<[a-z0-9]+\b[^>]*?(?:id|name)="([^"]+)"`)
	linked    = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// linksOf returns the targets of the links and pictures in a document.
func linksOf(text string) (links []string) {
	text = code.ReplaceAllString(block.ReplaceAllString(text, ""), "")
	for _, form := range []*regexp.Regexp{target, reference, attribute} {
		for _, found := range form.FindAllStringSubmatch(text, -1) {
			links = append(links, found[1])
		}
	}
	return links
}

// anchorsOf returns the anchors of a document: those that GitHub makes of its headings,
// and those that it names itself.
func anchorsOf(text string) map[string]bool {
	anchors := map[string]bool{}
	text = block.ReplaceAllString(text, "")
	for _, found := range named.FindAllStringSubmatch(text, -1) {
		anchors[found[1]] = true
	}
	for _, found := range heading.FindAllStringSubmatch(text, -1) {
		base := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, linked.ReplaceAllString(found[1], "$1"))
		anchor := base
		for n := 1; anchors[anchor]; n++ {
			anchor = fmt.Sprintf("%s-%d", base, n)
		}
		anchors[anchor] = true
	}
	return anchors
}

func TestDeadLinksAreFound(t *testing.T) {
	text := "# One `thing`, two\n## Same\n## Same\n<a id=\"own\"></a>\n```\n# no heading\n[no](link)\n```\n`[no](link)`\n" +
		"[a](b.md#c) ![d](e.svg \"title\")\n[f]: <g.md>\n<img src=\"h.svg\">\n"
	require.Equal(t, []string{"b.md#c", "e.svg", "g.md", "h.svg"}, linksOf(text))
	require.Equal(t, map[string]bool{"one-thing-two": true, "same": true, "same-1": true, "own": true}, anchorsOf(text))

	file := filepath.Join(t.TempDir(), "a.md")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	for _, link := range []string{"#same-1", "a.md#own", "a.md", ".", "https://example.com/x#y"} {
		require.NoError(t, follow(t, file, link), link)
	}
	for _, link := range []string{"#none", "b.md", "a.md#none", ".#same"} {
		require.Error(t, follow(t, file, link), link)
	}
}
