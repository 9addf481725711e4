package adopt

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// document is a file: its content, and where the servers are in it.
type document struct {
	path    string
	data    []byte
	servers []server
}

var byteOrderMark = []byte("\ufeff")

var errEmpty = errors.New("is empty")

// newDocument parses a file: TOML by its name, and else JSON or YAML by how it begins.
func newDocument(path string, data []byte) (*document, error) {
	parse, language := parseYAML, "neither JSON nor YAML"
	if !utf8.Valid(data) {
		return nil, errors.New("is not valid UTF-8: save it as UTF-8")
	}
	plain := bytes.Replace(data, byteOrderMark, []byte("   "), 1) // all places stay the same
	switch start := bytes.TrimSpace(plain); {
	case filepath.Ext(path) == ".toml":
		parse, language = parseTOML, "not valid TOML"
	case len(start) == 0:
		return nil, errEmpty
	case strings.IndexByte("{[/", start[0]) >= 0:
		parse, language = parseJSON, "not valid JSON"
	default:
		plain = data
	}
	root, err := parse(plain)
	if err != nil {
		return nil, fmt.Errorf("is %s: %s", language, visible(strings.TrimPrefix(strings.TrimPrefix(err.Error(), "hujson: "), "yaml: ")))
	}
	return &document{path, data, servers(root)}, nil
}

// raw returns a value as it is written.
func (d *document) raw(v *value) string { return string(d.data[v.start:v.end]) }

// like returns a field with another name and another value, which are written like its own.
func (d *document) like(f *field, name, value string) string {
	return reworded(string(d.data[f.start:f.end]), f.name, name) + string(d.data[f.end:f.value.start]) + value
}

// reworded replaces a word in a text that may have quotes.
func reworded(text, from, to string) string {
	if at := strings.LastIndex(text, from); at >= 0 {
		return text[:at] + to + text[at+len(from):]
	}
	return text
}

// lead returns the white space before a place, with the end of the line before it if nothing else is on its own line.
func (d *document) lead(at int) string {
	before := bytes.TrimRight(d.data[:at], " \t")
	lead := string(d.data[len(before):at])
	for _, end := range []string{"\r\n", "\n"} {
		if bytes.HasSuffix(before, []byte(end)) {
			return end + lead
		}
	}
	return lead
}

// edit replaces a part of a document.
type edit struct {
	start, end int
	text       string
}

// edited returns the document with edits.
func (d *document) edited(edits []edit) (*document, error) {
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	var data []byte
	at := 0
	for _, e := range edits {
		data = append(append(data, d.data[at:e.start]...), e.text...)
		at = e.end
	}
	return newDocument(d.path, append(data, d.data[at:]...))
}
