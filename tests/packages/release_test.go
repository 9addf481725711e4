//go:build packages

package packages

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// maxProgram is how large a program may be: 26 MiB.
const maxProgram = 26 << 20

var all = flag.Bool("all", false, "make the files for all platforms, and not only those that the tests run")

// temp is the folder for the clones and the files of this run. Its path is short, as podman wants it.
var temp string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if temp, err = os.MkdirTemp("", "packages"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(temp)
	if err := pack("../..", "release", "022"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// file returns the path of a file of the release.
func file(name string) string { return filepath.Join(temp, "release", name) }

// host is the platform on which the tests run.
const host = runtime.GOOS + "_" + runtime.GOARCH

// pack makes a release into a folder, from a clone of its own with the last commit of a repository.
func pack(repository, name, umask string) error {
	platforms := []string{}
	if !*all {
		platforms = []string{"-platforms", runtime.GOOS + "/" + runtime.GOARCH + ",windows/amd64"}
	}
	const script = `umask "$1" && git clone --quiet --shared "$2" "$3-source" && cd "$3-source/packaging" && out=$3 && shift 3 && go run . "$@" "$out"`
	cmd := exec.Command("sh", append([]string{"-c", script, "sh", umask, repository, filepath.Join(temp, name)}, platforms...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// sums returns the checksum of each file below a folder.
func sums(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		all[name] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	}))
	return all
}

// The second clone, of the first one, is another folder, and its files have other times and modes.
func TestTwoRunsMakeTheSameBytes(t *testing.T) {
	require.NoError(t, pack(file("")+"-source", "second", "077"))
	first := sums(t, file(""))
	require.Equal(t, first, sums(t, filepath.Join(temp, "second")))

	checked := execute(t, "sh", "-c", `cd "$1" && sha256sum --check --strict SHA256SUMS`, "sh", file(""))
	require.Contains(t, checked, "mcpactor_"+host+".tar.gz: OK\n")
	require.Contains(t, checked, "mcpactor_windows_amd64.zip: OK\n")
	formula, err := os.ReadFile(file("mcpactor.rb"))
	require.NoError(t, err)
	require.Contains(t, string(formula), "/mcpactor_"+host+".tar.gz\"\n      sha256 \""+first["mcpactor_"+host+".tar.gz"]+"\"\n")
}

// inTarball calls a function for each file of a compressed archive.
func inTarball(t *testing.T, path string, visit func(header *tar.Header, content []byte)) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	for archive := tar.NewReader(z); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		content, err := io.ReadAll(archive)
		require.NoError(t, err)
		visit(header, content)
	}
}

func TestProgramsAreSmallAndNeedNoLibraries(t *testing.T) {
	packages, err := filepath.Glob(file("npm/mcpactor-*.tgz"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(packages), 2)
	for _, path := range packages {
		inTarball(t, path, func(header *tar.Header, content []byte) {
			if !strings.HasPrefix(header.Name, "package/mcpactor") {
				return
			}
			t.Logf("%-24s %.1f MB", filepath.Base(path), float64(len(content))/1e6)
			require.LessOrEqual(t, len(content), maxProgram)
			require.EqualValues(t, 0o755, header.Mode)
			info, err := buildinfo.Read(bytes.NewReader(content))
			require.NoError(t, err)
			require.Contains(t, info.String(), "CGO_ENABLED=0")
			require.Contains(t, info.String(), "-trimpath=true")
		})
	}
}

// version returns what "mcpactor version" prints first in all packages: its name, and the version that Go made of the commit.
func version(t *testing.T) string {
	t.Helper()
	found := ""
	inTarball(t, file("mcpactor_"+host+".tar.gz"), func(header *tar.Header, content []byte) {
		if header.Name == "mcpactor" {
			info, err := buildinfo.Read(bytes.NewReader(content))
			require.NoError(t, err)
			found = info.Main.Version
		}
	})
	require.Regexp(t, `^v\d+\.\d+\.\d+[-.0-9a-z]*$`, found)
	return "mcpactor " + found + " (commit "
}

// execute runs a command, and returns what it prints.
func execute(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, out)
	return string(out)
}

func TestArchiveHasTheProgram(t *testing.T) {
	folder := t.TempDir()
	execute(t, "tar", "-xzf", file("mcpactor_"+host+".tar.gz"), "-C", folder)
	require.Contains(t, execute(t, filepath.Join(folder, "mcpactor"), "version"), version(t))
	for _, name := range []string{"LICENSE", "README.md", "mcpactor.service"} {
		require.FileExists(t, filepath.Join(folder, name))
	}
}

func TestArchiveForWindowsHasAProgramThatRuns(t *testing.T) {
	folder := t.TempDir()
	archive, err := zip.OpenReader(file("mcpactor_windows_amd64.zip"))
	require.NoError(t, err)
	defer archive.Close()
	require.NoError(t, os.CopyFS(folder, archive))
	require.Contains(t, execute(t, "../wine/run", filepath.Join(folder, "mcpactor.exe"), "version"), version(t))
}
