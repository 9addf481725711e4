package adopt

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
)

// program is how a client starts this program.
type program struct {
	words []string // with the PATH of adopt
	path  string   // without it, or "" if the program may move
}

// findProgram returns how a client starts this program.
func findProgram(system string) (program, error) {
	self, err := os.Executable()
	if err != nil {
		return program{}, err
	}
	found, err := exec.LookPath("mcpactor")
	if err != nil { // it may be in the current folder, where a client is not
		found = ""
	}
	one, _ := os.Stat(self)
	other, _ := os.Stat(found)
	same := os.SameFile(one, other)
	words := wordsFor(self, found, same, system)
	if words == nil {
		return program{}, cli.Usagef("this program will vanish after go run: install it, with go install")
	}
	return program{words, pathFor(self, found, same, words)}, nil
}

// pathFor returns the path that goes with the words of wordsFor. It is that of a link rather than of a version, and of a program that npm has
// installed rather than of its script, which needs Node on the PATH.
func pathFor(self, found string, same bool, words []string) string {
	switch {
	case slices.Contains(words, "npx"):
		return ""
	case same || strings.Contains(filepath.ToSlash(self), "/_npx/"):
		return found
	}
	return self
}

// withoutPath reports whether a server may start without the PATH of adopt: it has one of its own, or its command is a whole path.
func (l launch) withoutPath(entry *value) bool {
	for _, holder := range []*value{entry, l.holder} {
		for _, name := range []string{"env", "environment"} {
			for _, f := range holder.object(name).fields {
				if strings.EqualFold(f.name, "PATH") {
					return true
				}
			}
		}
	}
	return wholePath.MatchString(l.words[0])
}

var wholePath = regexp.MustCompile(`^(/|\\\\|[A-Za-z]:[\\/])`)

// wordsFor returns the words for the program at a path, when a command of its name was found, which may be the same. A folder of npm
// may be a cache: then npx has to find the program. There are no words for a program that will vanish.
func wordsFor(self, found string, same bool, system string) []string {
	const packages = "/node_modules/"
	isPackage := strings.Contains(filepath.ToSlash(self), packages)
	isInstalled := found != "" && !strings.Contains(filepath.ToSlash(found), packages)
	switch {
	case isInstalled && isPackage && system == "windows" && strings.EqualFold(path.Ext(found), ".cmd"): // neither can they start a script
		return []string{"cmd", "/c", "mcpactor"}
	case isInstalled && (same || isPackage):
		return []string{"mcpactor"}
	case isPackage && system == "windows": // clients cannot start npx itself there
		return []string{"cmd", "/c", "npx", "-y", "mcpactor"}
	case isPackage:
		return []string{"npx", "-y", "mcpactor"}
	case strings.Contains(filepath.ToSlash(self), "/go-build"):
		return nil
	}
	return []string{self}
}
