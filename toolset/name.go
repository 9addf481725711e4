package toolset

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
)

// maxName is the longest name that the APIs of models accept, in bytes.
const maxName = 64

// The lengths of hashes in names, in bytes. A hash is twice as long in hexadecimal.
const (
	shortHash = 4
	longHash  = 16
)

var (
	unsafe = regexp.MustCompile(`[^a-zA-Z0-9_-]`)
	hashed = regexp.MustCompile(`_([0-9a-f]{8}|[0-9a-f]{32})$`)
)

// SafeName returns the name of a server's tool for the APIs of models: it matches
// ^[a-zA-Z0-9_-]{1,64}$, and depends on nothing but its arguments.
//
// The name is "server__tool" if that is safe and unambiguous. Otherwise other
// characters become "_", a name that is too long is cut, and a hash of server and tool
// is appended: "_" and 8 hexadecimal digits. A name is ambiguous if the server's name
// contains "__" or ends in "_", and if the tool's name ends in what looks like such a
// hash. Two tools get the same name only if their hashes are the same; a [Set] then
// gives both a longer hash.
func SafeName(server, tool string) string {
	name := server + "__" + tool
	plain := !strings.Contains(server, "__") && !strings.HasSuffix(server, "_")
	if plain && len(name) <= maxName && !unsafe.MatchString(name) && !hashed.MatchString(name) {
		return name
	}
	return hashedName(server, tool, shortHash)
}

// hashedName returns a safe name that ends in a hash of n bytes.
func hashedName(server, tool string, n int) string {
	name := unsafe.ReplaceAllString(server+"__"+tool, "_")
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(server), server, tool))
	suffix := fmt.Sprintf("_%x", sum[:n])
	return name[:min(len(name), maxName-len(suffix))] + suffix
}

// prefixOf returns how the safe names of a server's tools begin, unless they are cut.
func prefixOf(server string) string { return unsafe.ReplaceAllString(server, "_") + "__" }

// fits reports whether a tool of a server may have this safe name.
func fits(name, server string) bool {
	prefix := prefixOf(server)
	return strings.HasPrefix(name, prefix[:min(len(prefix), maxName-len("_")-2*longHash)]) // the rest may be a hash
}

// distinct gives tools that share a name a longer hash, in place. The tools differ in
// server or original name.
func distinct(tools []*Tool) {
	count := map[string]int{}
	for _, tool := range tools {
		count[tool.Name]++
	}
	for i, tool := range tools {
		if count[tool.Name] > 1 {
			longer := *tool
			longer.Name = hashedName(tool.Server, tool.Original, longHash)
			tools[i] = &longer
		}
	}
}
