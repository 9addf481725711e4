package internal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/mcpactor/mcpactor/"

// circles is how many files of a package need each other in a circle: each uses what the others define, directly or through
// further files. All other packages of these rooms have none. A number may only become smaller.
var circles = map[string]int{
	"actors/internal/admission":  2,
	"actors/internal/catalogue":  3,
	"actors/registry":            13,
	"cluster":                    6,
	"cluster/internal/mesh":      4,
	"cluster/internal/node":      24,
	"cluster/internal/quorum":    3,
	"cluster/internal/wire":      3,
	"gateway":                    14,
	"gateway/internal/mcpserver": 2,
	"toolset":                    17,
}

// The files of a package need each other one way: if a file uses what another one defines, directly or through further files,
// the other one uses nothing of the first.
func TestFilesNeedEachOtherOneWay(t *testing.T) {
	found := map[string]int{}
	for _, pkg := range slices.Concat(list(t, "..", "./mcpbridge/...", "./actors/...", "./toolset/...", "./gateway/...", "./login/..."), list(t, "../cluster", "./...")) {
		if pkg.Standard || pkg.DepOnly {
			continue
		}
		uses := usesBetweenFiles(t, pkg)
		name := strings.TrimPrefix(pkg.ImportPath, module)
		for from := range uses {
			path := pathTo(from, from, uses, map[string]bool{})
			if path == nil {
				continue
			}
			found[name]++
			if circles[name] == 0 {
				t.Logf("%s: a file needs itself through others: %v", name, path)
			}
		}
	}
	require.Equal(t, circles, found)
}

// imports says which packages of the module a package may import. Each line is for the packages on its
// left; what ends in /... is a package with all below it. A package needs a line, and what a line allows is in
// the lines above it: so imports point one way.
var imports = []struct{ of, may string }{
	// What several rooms share, and what needs nothing of them.
	{"internal/caller internal/clock internal/dispatch internal/door internal/freeport internal/guard internal/leaktest internal/limits internal/loopback internal/mismatch internal/nearest internal/pattern internal/schedule", ""},
	{"internal/exact internal/finder internal/proof internal/proof/prooftest internal/rank internal/schemas internal/shown internal/toolsize internal/visible internal/wellformed", ""},
	{"internal/oauthresource", "internal/loopback internal/visible"},
	{"internal/relay", "internal/dispatch"},
	{"internal/definition", "internal/exact"},
	{"pin", "internal/definition internal/visible"},

	// What is said.
	{"messages", "internal/caller"},
	{"internal/repeats", "messages internal/clock"},
	{"internal/tracecontext", "messages"},
	{"internal/operations", "messages"},
	{"internal/results", "messages internal/operations internal/exact internal/guard internal/wellformed"},
	{"internal/recordkey internal/tasks", "messages"},

	// The bridge knows nothing of actors, and its contract nothing of the rooms below it.
	{"internal/identity", "internal/guard"},
	{"internal/introduction", "messages internal/identity"},
	{"mcpbridge/internal/challenge mcpbridge/internal/header", ""},
	{"mcpbridge/internal/rpc", "internal/wellformed"},
	{"mcpbridge", "messages internal/guard internal/identity internal/limits internal/loopback internal/oauthresource internal/pattern internal/visible mcpbridge/internal/challenge mcpbridge/internal/header mcpbridge/internal/rpc"},
	{"internal/rounds", "mcpbridge messages"},
	{"internal/listclass", "mcpbridge messages internal/guard internal/identity internal/introduction"},
	{"internal/dial", "mcpbridge messages"},
	{"mcpbridge/internal/redact", "mcpbridge internal/guard internal/visible"},
	{"mcpbridge/internal/stderr", "messages internal/guard internal/relay"},
	{"mcpbridge/internal/wire", "mcpbridge messages internal/caller internal/guard internal/operations mcpbridge/internal/redact mcpbridge/internal/rpc"},
	{"mcpbridge/internal/doubt", "mcpbridge mcpbridge/internal/rpc mcpbridge/internal/wire"},
	{"mcpbridge/internal/hold", ""},
	{"mcpbridge/internal/transport", "mcpbridge internal/guard mcpbridge/internal/hold mcpbridge/internal/redact mcpbridge/internal/stderr mcpbridge/internal/wire"},
	{"mcpbridge/internal/tap", "mcpbridge mcpbridge/internal/redact mcpbridge/internal/rpc mcpbridge/internal/transport mcpbridge/internal/wire"},
	{"mcpbridge/internal/outbound", "internal/clock mcpbridge messages internal/guard internal/identity internal/proof internal/rounds internal/tasks mcpbridge/internal/challenge mcpbridge/internal/header mcpbridge/internal/hold mcpbridge/internal/redact mcpbridge/internal/rpc " +
		"mcpbridge/internal/transport mcpbridge/internal/wire"},
	{"mcpbridge/internal/memory", "mcpbridge internal/guard mcpbridge/internal/tap mcpbridge/internal/transport"},
	{"mcpbridge/internal/stdio", "mcpbridge internal/limits mcpbridge/internal/redact mcpbridge/internal/rpc mcpbridge/internal/stderr mcpbridge/internal/tap mcpbridge/internal/transport mcpbridge/internal/wire"},
	{"mcpbridge/internal/sse", "mcpbridge mcpbridge/internal/outbound mcpbridge/internal/rpc mcpbridge/internal/tap mcpbridge/internal/transport mcpbridge/internal/wire"},
	{"mcpbridge/internal/streamable", "mcpbridge internal/dial internal/tasks mcpbridge/internal/outbound mcpbridge/internal/redact mcpbridge/internal/rpc mcpbridge/internal/sse mcpbridge/internal/transport mcpbridge/internal/wire"},
	{"mcpbridge/internal/bridgetest", "mcpbridge/internal/rpc"},
	{"mcpbridge/internal/bridge", "mcpbridge messages internal/dial internal/guard internal/identity internal/introduction internal/recordkey internal/results internal/schemas internal/rounds internal/tasks mcpbridge/internal/doubt mcpbridge/internal/hold mcpbridge/internal/memory mcpbridge/internal/redact " +
		"mcpbridge/internal/rpc mcpbridge/internal/sse mcpbridge/internal/stderr mcpbridge/internal/stdio mcpbridge/internal/streamable mcpbridge/internal/transport mcpbridge/internal/wire"},
	{"mcpbridge/dialer", "mcpbridge internal/dial mcpbridge/internal/bridge"},

	// A store is the choice of the program.
	{"internal/storelimit", "mcpbridge messages internal/guard"},
	{"login", "mcpbridge messages internal/oauthresource internal/proof internal/recordkey internal/storelimit internal/visible"},
	{"internal/logintest", "login"},
	{"internal/entry", "mcpbridge messages"},
	{"resume/...", "mcpbridge messages resume/... internal/entry"},
	{"internal/callbook", "mcpbridge messages internal/caller internal/guard internal/recordkey internal/results"},

	// The actors communicate by messages: a session knows nothing of the registry, which spawns it.
	{"actors", "mcpbridge messages internal/dial internal/relay"},
	{"internal/protocol", "mcpbridge messages actors internal/callbook internal/caller internal/dial internal/listclass internal/relay"},
	{"actors/internal/alarm actors/internal/callctx actors/internal/mailbox actors/internal/ring", ""},
	{"actors/internal/bounds", "mcpbridge messages internal/clock actors/internal/ring"},
	{"actors/internal/mailbox/mailboxtest", "actors/internal/mailbox"},
	{"actors/internal/contract", "actors/internal/bounds actors mcpbridge messages internal/callbook internal/caller internal/dial internal/dispatch internal/guard internal/protocol internal/relay internal/rounds internal/tasks " +
		"actors/internal/callctx actors/internal/mailbox actors/internal/ring"},
	{"actors/internal/admission", "mcpbridge messages actors/internal/alarm actors/internal/ring"},                                                    // it decides, and sends nothing
	{"actors/internal/catalogue", "mcpbridge messages internal/listclass internal/recordkey internal/results internal/toolsize actors/internal/ring"}, // as well
	{"actors/internal/faults", "actors mcpbridge messages actors/internal/admission"},
	{"actors/internal/table", "mcpbridge messages internal/dial internal/nearest internal/protocol actors/internal/admission actors/internal/alarm " +
		"actors/internal/catalogue actors/internal/contract actors/internal/faults actors/internal/mailbox"},
	{"actors/internal/handles", "mcpbridge messages"},
	{"actors/internal/questions", "messages internal/operations internal/protocol internal/relay actors/internal/contract actors/internal/mailbox actors/internal/ring"},
	{"actors/internal/connections", "mcpbridge internal/dial"},
	{"actors/internal/owed", "messages internal/dial internal/tasks actors/internal/contract"},
	{"actors/internal/subscribers", "mcpbridge messages internal/relay actors/internal/contract"},
	{"actors/internal/session", "internal/callbook internal/repeats actors mcpbridge messages internal/dial internal/operations internal/relay internal/rounds internal/tasks actors/internal/alarm actors/internal/callctx actors/internal/connections actors/internal/contract " +
		"actors/internal/mailbox actors/internal/owed actors/internal/questions actors/internal/subscribers"},
	{"actors/internal/cleanup", "actors mcpbridge actors/internal/alarm actors/internal/contract actors/internal/mailbox"},
	{"actors/internal/pace", "actors/internal/alarm"},
	{"actors/internal/jobs", "messages actors/internal/contract actors/internal/mailbox"},
	{"actors/internal/inspection", "messages actors/internal/admission actors/internal/contract actors/internal/table"},
	{"actors/internal/closing", "messages actors/internal/alarm actors/internal/contract actors/internal/ring actors/internal/table"},
	{"actors/internal/owners", "messages actors/internal/contract actors/internal/ring"},
	{"actors/internal/reports", "actors mcpbridge messages internal/operations internal/relay actors/internal/contract actors/internal/table"},
	{"actors/internal/member", "messages internal/protocol actors/internal/contract actors/internal/table"},
	{"actors/internal/keeper", "actors mcpbridge messages internal/protocol internal/recordkey internal/results actors/internal/alarm actors/internal/contract actors/internal/handles actors/internal/jobs actors/internal/mailbox actors/internal/member " +
		"actors/internal/reports actors/internal/table"},
	{"actors/internal/refusal", "messages actors/internal/admission actors/internal/contract actors/internal/table"},
	{"actors/internal/interception", "actors messages internal/callbook internal/caller internal/protocol actors/internal/keeper actors/internal/alarm actors/internal/contract actors/internal/mailbox " +
		"actors/internal/owners actors/internal/pace actors/internal/refusal actors/internal/reports actors/internal/ring actors/internal/table"},
	{"actors/internal/lists", "actors mcpbridge messages internal/identity internal/introduction internal/listclass actors/internal/catalogue actors/internal/contract actors/internal/interception actors/internal/jobs actors/internal/mailbox " +
		"actors/internal/member actors/internal/owners actors/internal/reports actors/internal/table"},
	{"actors/internal/servers", "mcpbridge internal/limits actors/internal/admission actors/internal/contract actors/internal/table"},
	{"actors/internal/sessions", "mcpbridge messages actors/internal/admission actors/internal/alarm actors/internal/cleanup actors/internal/closing actors/internal/contract " +
		"actors/internal/lists actors/internal/mailbox actors/internal/owners actors/internal/servers actors/internal/session actors/internal/table"},
	{"actors/internal/sessions/sessionstest", "mcpbridge messages internal/protocol internal/relay actors/internal/alarm actors/internal/closing actors/internal/contract actors/internal/lists " +
		"actors/internal/mailbox/mailboxtest actors/internal/owners actors/internal/servers actors/internal/sessions actors/internal/table"},
	{"actors/internal/dialing", "actors mcpbridge messages actors/internal/admission actors/internal/alarm actors/internal/contract actors/internal/faults " +
		"actors/internal/jobs actors/internal/reports actors/internal/sessions actors/internal/table"},
	{"actors/internal/closer", "mcpbridge messages internal/protocol internal/recordkey actors/internal/handles actors/internal/keeper actors/internal/alarm actors/internal/closing actors/internal/contract actors/internal/jobs actors/internal/member " +
		"actors/internal/sessions actors/internal/table"},
	{"actors/internal/calls", "actors/internal/bounds mcpbridge messages internal/protocol internal/rounds actors/internal/closer actors/internal/contract actors/internal/dialing actors/internal/lists actors/internal/member " +
		"actors/internal/owners actors/internal/pace actors/internal/refusal actors/internal/reports actors/internal/sessions actors/internal/table"},
	{"actors/registry", "actors mcpbridge messages internal/caller internal/dispatch internal/door internal/identity internal/listclass internal/protocol internal/relay " +
		"actors/internal/keeper actors/internal/admission actors/internal/alarm actors/internal/contract actors/internal/mailbox " +
		"actors/internal/calls actors/internal/closer actors/internal/closing actors/internal/dialing actors/internal/inspection actors/internal/interception actors/internal/jobs actors/internal/lists actors/internal/member actors/internal/owners actors/internal/pace actors/internal/refusal actors/internal/reports actors/internal/servers actors/internal/sessions actors/internal/table"},

	{"supervisor", "actors actors/registry mcpbridge mcpbridge/dialer messages internal/callbook internal/caller internal/dial internal/limits internal/mismatch internal/protocol internal/relay internal/schemas internal/storelimit"},
	{"supervisor/debug supervisor/health", "messages supervisor internal/callbook internal/toolsize internal/visible"},
	{"supervisor/telemetry", "actors mcpbridge messages supervisor internal/caller internal/dial internal/rounds internal/tasks internal/tracecontext"},
	{"internal/clusterapi", "messages internal/callbook internal/caller internal/dial internal/dispatch internal/door internal/entry internal/freeport internal/guard internal/mismatch internal/operations internal/recordkey " +
		"internal/protocol internal/relay internal/results internal/storelimit internal/tracecontext"}, // the module cluster has the rest
	{"toolset/...", "mcpbridge messages supervisor toolset/... internal/callbook internal/caller internal/definition internal/exact internal/finder internal/guard internal/limits internal/nearest internal/pattern internal/rank internal/relay internal/repeats internal/schemas internal/shown internal/tracecontext internal/visible"},
	{"config", "login mcpbridge messages pin supervisor toolset internal/definition internal/loopback internal/nearest internal/wellformed"},

	{"internal/listfile", "mcpbridge messages internal/recordkey"},
	{"gateway/internal/paramheader gateway/internal/rounds gateway/internal/seal", ""},
	{"gateway/internal/mcpserver", "gateway/internal/paramheader internal/loopback internal/wellformed"},
	{"gateway/internal/publicid", "gateway/internal/seal"},
	{"gateway/internal/pinned", "gateway/internal/mcpserver internal/definition internal/exact internal/results"},
	{"gateway/internal/view", "gateway/internal/mcpserver internal/finder internal/rank internal/schemas internal/shown"},
	{"gateway", "mcpbridge messages resume supervisor toolset gateway/internal/mcpserver gateway/internal/paramheader gateway/internal/pinned gateway/internal/publicid gateway/internal/rounds gateway/internal/seal gateway/internal/view internal/caller internal/finder internal/identity internal/introduction internal/listclass internal/listfile internal/recordkey internal/results internal/shown internal/visible"},

	// The rooms of the command mcpactor.
	{"cmd/internal/cli", "supervisor supervisor/debug supervisor/health"},
	{"cmd/mcpactor/internal/browser", "login mcpbridge messages internal/loopback internal/oauthresource internal/proof internal/visible"},
	{"cmd/mcpactor/internal/inputs", "config messages pin resume supervisor toolset internal/nearest cmd/internal/cli cmd/mcpactor/internal/browser"},
	{"cmd/mcpactor/internal/target", "config mcpbridge pin supervisor toolset internal/visible cmd/internal/cli cmd/mcpactor/internal/inputs cmd/mcpactor/internal/browser"},
	{"cmd/mcpactor/internal/handleguess", "mcpbridge"},
	{"cmd/mcpactor/internal/commands", "config login mcpbridge messages pin supervisor toolset internal/definition internal/finder internal/loopback internal/nearest internal/oauthresource internal/schemas internal/toolsize internal/visible " +
		"cmd/internal/cli cmd/mcpactor/internal/handleguess cmd/mcpactor/internal/inputs cmd/mcpactor/internal/browser cmd/mcpactor/internal/target"},
	{"cmd/mcpactor/internal/exec", "config mcpbridge messages supervisor toolset internal/operations internal/wellformed " +
		"cmd/internal/cli cmd/mcpactor/internal/commands cmd/mcpactor/internal/inputs"},

	// Other programs, and what tests them.
	{"tests/... cmd/... docs/...", "actors config gateway login mcpbridge mcpbridge/dialer messages supervisor/... toolset/... resume/... " +
		"internal/... tests/... cmd/... docs/..."},
	{"internal", ""},
}

func TestImportsPointOneWay(t *testing.T) {
	matches := func(list, name string) bool {
		for _, pattern := range strings.Fields(list) {
			room, all := strings.CutSuffix(pattern, "/...")
			if name = strings.TrimSuffix(name, "/..."); name == room || all && strings.HasPrefix(name, room+"/") {
				return true
			}
		}
		return false
	}
	for i, line := range imports {
		for _, name := range strings.Fields(line.may) {
			above := false
			for _, before := range imports[:i+1] {
				for _, of := range strings.Fields(before.of) {
					above = above || matches(of, name) || matches(name, strings.TrimSuffix(of, "/..."))
				}
			}
			require.True(t, above, "%s may import %s, which has no line above", line.of, name)
		}
	}
	for _, pkg := range list(t, "..", "./...") {
		if pkg.Standard || pkg.DepOnly {
			continue
		}
		name, found := strings.TrimPrefix(pkg.ImportPath, module), false
		for _, line := range imports {
			if !matches(line.of, name) {
				continue
			}
			found = true
			for _, imported := range pkg.Imports {
				if other, ours := strings.CutPrefix(imported, module); ours {
					require.True(t, matches(line.may, other), "%s imports %s", name, other)
				}
			}
			break
		}
		require.True(t, found, "%s has no line", name)
	}
}

// pathTo returns a way from a file to another by what each uses, or nil.
func pathTo(to, from string, uses map[string]map[string]string, seen map[string]bool) []string {
	for next, name := range uses[from] {
		step := fmt.Sprintf("%s uses %s of %s", from, name, next)
		if next == to {
			return []string{step}
		}
		if !seen[next] {
			seen[next] = true
			if rest := pathTo(to, next, uses, seen); rest != nil {
				return append([]string{step}, rest...)
			}
		}
	}
	return nil
}

// usesBetweenFiles returns, for each file, which other files of its package define something that
// it uses, with one name each. Methods and fields count.
func usesBetweenFiles(t *testing.T, pkg listed) map[string]map[string]string {
	uses := map[string]map[string]string{}
	eachUse(t, pkg, func(from, to string, object types.Object) {
		if uses[from] == nil {
			uses[from] = map[string]string{}
		}
		uses[from][to] = object.Name()
	})
	return uses
}

// eachUse calls f for each use, in a file of a package, of what another one of its files defines.
func eachUse(t *testing.T, pkg listed, f func(from, to string, object types.Object)) {
	fset, info := token.NewFileSet(), &types.Info{Uses: map[*ast.Ident]types.Object{}}
	var files []*ast.File
	for _, name := range pkg.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(pkg.Dir, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, file)
	}
	exports := map[string]string{}
	for _, dep := range list(t, pkg.Dir, ".") {
		exports[dep.ImportPath] = dep.Export
	}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	_, err := config.Check(pkg.ImportPath, fset, files, info)
	require.NoError(t, err)

	for id, object := range info.Uses {
		if object.Pkg() == nil || object.Pkg().Path() != pkg.ImportPath {
			continue
		}
		from, to := filepath.Base(fset.Position(id.Pos()).Filename), filepath.Base(fset.Position(object.Pos()).Filename)
		if from != to {
			f(from, to, object)
		}
	}
}

// listed is a package as go list describes it.
type listed struct {
	ImportPath, Dir, Export string
	Imports, Deps           []string
	GoFiles                 []string
	Standard, DepOnly       bool
}

// list returns packages of the module in a folder, and all that they import.
func list(t *testing.T, dir string, patterns ...string) (all []listed) {
	args := append([]string{"list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,Imports,Deps,Standard,DepOnly"}, patterns...)
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	require.NoError(t, err)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg listed
		if err := d.Decode(&pkg); errors.Is(err, io.EOF) {
			return all
		} else {
			require.NoError(t, err)
		}
		all = append(all, pkg)
	}
}
