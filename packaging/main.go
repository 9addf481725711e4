// Command packaging makes the files of a release: archives, packages for npm, Debian and RPM, an image, and a formula for Homebrew. The commit
// decides every byte of them: two runs make the same files. It has to run in a clone without changes, as "make dist" has it:
//
//	go -C packaging run . [-platforms linux/amd64,windows/amd64] FOLDER
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// release is what the files are made from, and where.
type release struct {
	out     string
	work    string    // a folder for files in between
	version string    // without the v of its tag
	time    time.Time // of the commit
	targets []*target
	sums    map[string]string // of the files that have been written
}

func main() {
	log.SetFlags(0)
	platforms := flag.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64", "the platforms, with that of this machine")
	flag.Parse()
	if err := run(flag.Arg(0), strings.Split(*platforms, ",")); err != nil {
		log.Fatal("packaging: ", err)
	}
}

func run(out string, platforms []string) error {
	if out == "" {
		return errors.New("name the folder for the files")
	}
	work, err := os.MkdirTemp("", "mcpactor-packaging-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // it is in the folder for such files
	r := &release{out: out, work: work, sums: map[string]string{}}
	if err := r.build(platforms); err != nil {
		return err
	}
	for _, step := range []func() error{r.archives, r.npm, r.linuxPackages, r.image, r.formula, r.checksums} {
		if err := step(); err != nil {
			return err
		}
	}
	log.Printf("mcpactor %s is in %s", r.version, out)
	return nil
}

// formula writes the formula for Homebrew, which takes the archives of the release.
func (r *release) formula() error {
	formula, err := r.file("homebrew/mcpactor.rb.tmpl", nil)
	if err != nil {
		return err
	}
	return r.create(formula.name, func(w io.Writer) error {
		_, err := w.Write(formula.data)
		return err
	})
}

// checksums writes the file that sha256sum --check reads. It has no packages for npm, which are published elsewhere.
func (r *release) checksums() error {
	names := slices.Sorted(maps.Keys(r.sums))
	return r.create("SHA256SUMS", func(w io.Writer) error {
		for _, name := range names {
			if !strings.Contains(name, "/") {
				fmt.Fprintf(w, "%s  %s\n", r.sums[name], name)
			}
		}
		return nil
	})
}

// create writes a file of the release, and notes its checksum.
func (r *release) create(name string, write func(w io.Writer) error) error {
	path := filepath.Join(r.out, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	sum := sha256.New()
	if err := errors.Join(write(io.MultiWriter(f, sum)), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.sums[name] = fmt.Sprintf("%x", sum.Sum(nil))
	return nil
}
