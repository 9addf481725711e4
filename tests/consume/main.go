// Command consume builds and runs programs that require the modules of this repository by
// version, without replace, as their users do, and installs mcpactor as docs/install.md says. Run it from the root of the repository:
//
//	go run ./tests/consume
//
// The modules come from a file proxy that has the tracked files of the working tree, under the
// version that the module cluster requires of the root.
package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/mcpactor/mcpactor/tests/internal/typecheck"
)

const root = "github.com/mcpactor/mcpactor"

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal("consume: ", err)
	}
}

// run does everything in a temporary folder, with a module cache of its own: the versions in it
// are nobody else's.
func run() error {
	dir, err := os.MkdirTemp("", "consume-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is in the folder for such files
	known, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		return err
	}
	cache, proxy, _ := strings.Cut(strings.TrimSpace(string(known)), "\n")
	files := "file://" + filepath.ToSlash(filepath.Join(dir, "proxy")) + ",file://" + filepath.ToSlash(filepath.Join(cache, "cache", "download"))
	c := &consumer{dir: dir, files: files, env: append(os.Environ(),
		"GOWORK=off", "GOFLAGS=-mod=mod -modcacherw -trimpath", "GOMODCACHE="+filepath.Join(dir, "cache"), "GONOSUMDB="+root,
		"GOPROXY="+files+","+proxy,
		"CGO_ENABLED=0", // the packages are built so, too: what others require is compiled once
		"GOSUMDB=off",   // the programs begin with the go.sum of module cluster
	)}
	return c.check()
}

// consumer has the proxy and the programs.
type consumer struct {
	dir   string
	files string // the proxies that are folders
	env   []string
}

func (c *consumer) check() error {
	required, err := os.ReadFile("cluster/go.mod")
	if err != nil {
		return err
	}
	found := regexp.MustCompile(`(?m)^\s*(?:require )?` + root + ` (v\S+)$`).FindSubmatch(required)
	if found == nil {
		return errors.New("cluster/go.mod does not require the root module")
	}
	version := string(found[1])
	const upgraded = "v0.99.0" // the root with another contract for the cluster
	change := strings.NewReplacer("Revision1", "Revision2")
	for _, publish := range []func() error{
		func() error { return c.publish(".", root, version, nil) },
		func() error { return c.publish("cluster", root+"/cluster", version, nil) },
		func() error { return c.publish(".", root, upgraded, change) },
	} {
		if err := publish(); err != nil {
			return err
		}
	}
	if err := c.install(version); err != nil {
		return err
	}
	if err := c.program("alone", map[string]string{root: version}); err != nil {
		return err
	}
	if err := c.program("cluster", map[string]string{root: version, root + "/cluster": version}); err != nil {
		return err
	}
	dir, err := c.write("cluster", map[string]string{root: upgraded, root + "/cluster": version})
	if err != nil {
		return err
	}
	_, err = typecheck.Module(dir, c.env) // compiling the root once more takes half a minute
	if err == nil || !strings.Contains(err.Error(), "undefined: clusterapi.Revision1") {
		return fmt.Errorf("the compiler does not notice that only one of the modules was upgraded: %w", err)
	}
	return nil
}

// publish adds a module to the proxy: the tracked files of a folder, without modules below it.
// change, if not nil, is applied to the package between the modules.
func (c *consumer) publish(folder, module, version string, change *strings.Replacer) error {
	listed, err := exec.Command("git", "-C", folder, "ls-files", "-z").Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	files := strings.Split(strings.TrimSuffix(string(listed), "\x00"), "\x00")
	var nested []string
	for _, file := range files {
		if path.Base(file) == "go.mod" && file != "go.mod" {
			nested = append(nested, path.Dir(file)+"/")
		}
	}
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for _, file := range files {
		source := filepath.Join(folder, file)
		info, err := os.Lstat(source)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() || hasPrefixOf(file, nested) {
			continue
		}
		text, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		if change != nil && strings.HasPrefix(file, "internal/clusterapi/") {
			text = []byte(change.Replace(string(text)))
		}
		into, err := w.Create(module + "@" + version + "/" + file)
		if err != nil {
			return err
		}
		if _, err := into.Write(text); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return err
	}
	at := filepath.Join(c.dir, "proxy", filepath.FromSlash(module), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	for end, text := range map[string][]byte{".info": []byte(fmt.Sprintf(`{"Version":%q}`, version)), ".mod": mod, ".zip": archive.Bytes()} {
		if err := os.WriteFile(filepath.Join(at, version+end), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// install runs the line of the documents that installs mcpactor, with a version as the latest.
func (c *consumer) install(version string) error {
	page, err := os.ReadFile("docs/install.md")
	if err != nil {
		return err
	}
	line := regexp.MustCompile(`(?m)^go install .*`).Find(page)
	if line == nil {
		return errors.New("docs/install.md does not say how to install mcpactor with Go")
	}
	list := filepath.Join(c.dir, "proxy", filepath.FromSlash(root), "@v", "list")
	if err := os.WriteFile(list, []byte(version+"\n"), 0o644); err != nil {
		return err
	}
	bin := filepath.Join(c.dir, "bin")
	cmd := exec.Command("sh", "-c", string(line))
	cmd.Dir = c.dir
	cmd.Env = append(c.env, "GOBIN="+bin, "GOPROXY="+c.files) // others may know of a version, or refuse to say that there is none
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", line, err, out)
	}
	if out, err := exec.Command(filepath.Join(bin, "mcpactor"), "serve", "--help").CombinedOutput(); err != nil {
		return fmt.Errorf("what %s has installed does not run: %w\n%s", line, err, out)
	}
	log.Printf("mcpactor is installed as docs/install.md says")
	return nil
}

func hasPrefixOf(file string, folders []string) bool {
	for _, folder := range folders {
		if strings.HasPrefix(file, folder) {
			return true
		}
	}
	return false
}

// write copies a program of testdata to a folder, with a go.mod that requires modules.
func (c *consumer) write(name string, modules map[string]string) (dir string, err error) {
	dir, err = os.MkdirTemp(c.dir, name+"-")
	if err != nil {
		return "", err
	}
	mod := "module example.com/" + name + "\n\ngo 1.26.0\n\n"
	for module, version := range modules {
		mod += "require " + module + " " + version + "\n"
	}
	source, err := os.ReadFile(filepath.Join("tests", "consume", "testdata", name, "main.go"))
	if err != nil {
		return "", err
	}
	sums, err := os.ReadFile("cluster/go.sum")
	if err != nil {
		return "", err
	}
	for file, text := range map[string][]byte{"go.mod": []byte(mod), "go.sum": sums, "main.go": source} {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o644); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// program builds and runs a program of testdata that requires modules. It prints how many
// modules the program requires in the end.
func (c *consumer) program(name string, modules map[string]string) error {
	dir, err := c.write(name, modules)
	if err != nil {
		return err
	}
	for _, args := range [][]string{{"go", "build", "-o", "program", "."}, {"./program"}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.Env = dir, c.env
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %s: %w\n%s", name, strings.Join(args, " "), err, out)
		}
	}
	final, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	log.Printf("%s: builds and runs; its go.mod has %d modules", name, len(regexp.MustCompile(` v\d`).FindAll(final, -1)))
	return nil
}
