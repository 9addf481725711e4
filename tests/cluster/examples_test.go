//go:build linux

package cluster_test

import (
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// example is one of the programs of docs/cluster.md, built with addresses that are free.
type example struct {
	t    *testing.T
	dir  string // in which its processes run
	path string
}

// newExample builds a program. addresses are pairs: what the page has, and what is used in its place.
func newExample(t *testing.T, name string, addresses ...string) *example {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("..", "..", "cluster", "examples", name, "main.go"))
	require.NoError(t, err)
	for i := 0; i < len(addresses); i += 2 {
		require.Contains(t, string(source), addresses[i])
	}
	e := &example{t: t, dir: dirOf(t)}
	e.path = filepath.Join(e.dir, name)
	file := e.path + ".go"
	require.NoError(t, os.WriteFile(file, []byte(strings.NewReplacer(addresses...).Replace(string(source))), 0o600))
	out, err := exec.Command("go", "build", "-o", e.path, file).CombinedOutput()
	require.NoError(t, err, string(out))
	return e
}

// run starts a process.
func (e *example) run(arg string) *process {
	e.t.Helper()
	return startProcess(e.t, nil, e.dir, arg, func(out io.Reader) { io.Copy(io.Discard, out) }, e.path, arg)
}

var printed = regexp.MustCompile(`(?m) (\w+) on (\S+): (\w+)$`)

// answer is what a process prints of a call.
type answer struct{ member, text string }

// answers returns the last answer of each scope, and how many answers there are, without the first ones.
func (p *process) answers(without int) (last map[string]answer, all int) {
	p.t.Helper()
	log, err := os.ReadFile(p.log)
	require.NoError(p.t, err)
	found := printed.FindAllStringSubmatch(string(log), -1)
	last = map[string]answer{}
	for _, line := range found[without:] {
		last[line[1]] = answer{line[2], line[3]}
	}
	return last, len(found)
}

// killOwner runs three members, and kills the one that has the session of alice. It returns the answers to her before
// and after that, at another member. That one has had answers for all six scopes from members that run.
func (e *example) killOwner(args, names []string) (before, after answer) {
	e.t.Helper()
	var members []*process
	for _, arg := range args {
		members = append(members, e.run(arg))
	}
	for _, p := range members {
		until(e.t, func() bool { _, all := p.answers(0); return all >= 4*6 }, p.tail)
	}
	last, _ := members[0].answers(0)
	owner := slices.Index(names, last["alice"].member)
	require.GreaterOrEqual(e.t, owner, 0)
	members[owner].kill()
	other := members[(owner+1)%len(members)]
	last, all := other.answers(0)
	before = last["alice"]
	until(e.t, func() bool {
		last, _ = other.answers(all)
		killed := slices.ContainsFunc(slices.Collect(maps.Values(last)), func(a answer) bool { return a.member == names[owner] })
		return len(last) == 6 && !killed
	}, other.tail)
	for i, p := range members {
		if i != owner {
			p.signal(syscall.SIGINT)
			p.wait()
		}
	}
	return before, last["alice"]
}

// Nobody can remove the only host of a cluster: it has its sessions and its lease after a pause as before.
func TestOnlyHostIsNotFencedByItsPause(t *testing.T) {
	t.Parallel()
	address := freeAddr(t)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	p := newExample(t, "hosts", `"127.0.0.1:8091", "127.0.0.1:8092", "127.0.0.1:8093"`, strconv.Quote(address)).run(port)
	answered := func(n int) {
		until(t, func() bool { _, all := p.answers(0); return all >= n }, p.tail)
	}
	answered(6)
	resume := p.pause()
	<-time.After(3 * lease)
	resume()
	_, all := p.answers(0)
	answered(all + 12)
	p.signal(syscall.SIGINT)
	p.wait()
	log, err := os.ReadFile(p.log)
	require.NoError(t, err)
	require.Equal(t, 6, strings.Count(string(log), "session opened"))
	require.Equal(t, 1, strings.Count(string(log), "member has its lease"))
	require.NotContains(t, string(log), "member starts no calls")
	require.NotContains(t, string(log), "fenced")
}

// The first program of the page, without anything else.
func TestFirstProgramOfThePageServesAllScopesWhenAMemberIsKilled(t *testing.T) {
	t.Parallel()
	args, names, addresses := []string{}, []string{}, []string{}
	for _, port := range []string{"8091", "8092", "8093"} {
		address := freeAddr(t)
		addresses = append(addresses, "127.0.0.1:"+port, address)
		_, free, err := net.SplitHostPort(address)
		require.NoError(t, err)
		args, names = append(args, free), append(names, address)
	}
	_, after := newExample(t, "hosts", addresses...).killOwner(args, names)
	require.Equal(t, "hello", after.text)
}

// The second program of the page, with etcd and certificates. Its sessions count their calls, and keep the count.
func TestSecondProgramOfThePageKeepsSessionsWhenAMemberIsKilled(t *testing.T) {
	t.Parallel()
	etcd := startEtcd(t, t.TempDir(), nil)
	e := newExample(t, "etcd", "127.0.0.1:2379", etcd.endpoint, "127.0.0.1:8080", freeAddr(t))
	newPEMFiles(t, e.dir, net.ParseIP("127.0.0.1"))
	e.run("server")
	names := []string{freeAddr(t), freeAddr(t), freeAddr(t)}
	before, after := e.killOwner(names, names)
	counted, err := strconv.Atoi(before.text)
	require.NoError(t, err)
	counts, err := strconv.Atoi(after.text)
	require.NoError(t, err)
	require.Greater(t, counts, counted)
}
