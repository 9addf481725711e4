// Package adopt is the command that puts mcpactor serve before the servers in the file of a client, and takes it away again. It changes
// only the bytes of these values.
package adopt

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/internal/nearest"
)

// Adopt is the command that puts serve before the servers of a client.
type Adopt struct {
	Client string   `arg:"" placeholder:"CLIENT|FILE" help:"The client, or its file."`
	Server []string `arg:"" optional:"" placeholder:"SERVER" help:"The servers. Default: all."`
	Undo   bool     `help:"Take serve away again."`
	DryRun bool     `help:"Show what would change, and change nothing."`
}

// Help names the clients.
func (*Adopt) Help() string {
	return "The clients are " + strings.Join(clientNames(), ", ") + `. Their files in this folder are changed, and those of the user.

Close the client first. Before a file is changed for the first time, a copy is kept: FILE` + suffix
}

// Run changes the files.
func (cmd *Adopt) Run(p *cli.Program) error {
	documents, err := cmd.documents()
	if err != nil {
		return err
	}
	c := undo
	if !cmd.Undo {
		found, err := findProgram(runtime.GOOS)
		if err != nil {
			return err
		}
		c = adopter(found)
	}
	return cmd.change(p, documents, c)
}

// documents reads the files, and checks that they have the servers.
func (cmd *Adopt) documents() (documents []*document, err error) {
	paths := filesOf(cmd.Client)
	isClient := paths != nil
	if !isClient {
		path, err := filepath.Abs(cmd.Client)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, cli.Usagef("there is no file %q: give the path of a client's file, or a client%s", cmd.Client, oneOf(cmd.Client, clientNames()))
		}
		paths = []string{path}
	}
	var names []string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		d, err := newDocument(path, data)
		if isClient && errors.Is(err, errEmpty) {
			continue
		}
		if err != nil {
			return nil, cli.Usagef("%s: %w", visible(path), err)
		}
		for _, s := range d.servers {
			names = append(names, s.name)
		}
		documents = append(documents, d)
	}
	if names == nil {
		return nil, cli.Usagef("no server was found in %s: give the path of the file that has servers", visible(strings.Join(paths, ", ")))
	}
	for _, name := range cmd.Server {
		if !slices.Contains(names, name) {
			return nil, cli.Usagef("there is no server %q%s", name, oneOf(name, names))
		}
	}
	return documents, nil
}

// oneOf names the known name that was meant, or all.
func oneOf(name string, known []string) string {
	if meant := nearest.Of(name, known); meant != "" {
		return fmt.Sprintf(": did you mean %q?", meant)
	}
	return ": " + cli.Printable(strings.Join(known, ", "))
}

// step changes a file.
type step struct {
	from, to *document // the same if there is nothing to change
	outcomes string    // of its servers
}

// change changes the servers of documents, and their files. A server that was named must be as it was meant to be.
func (cmd *Adopt) change(p *cli.Program, documents []*document, c change) (err error) {
	var steps []step
	for _, d := range documents {
		next, why := cmd.step(d, c)
		if next.from != next.to && !cmd.DryRun {
			if err := checkWritable(d.path); err != nil {
				return fmt.Errorf("nothing was changed: %w", err)
			}
		}
		steps, err = append(steps, next), cmp.Or(err, why)
	}
	var said bytes.Buffer
	restart := false
	for _, s := range steps {
		changes := s.from != s.to
		if changes && !cmd.DryRun {
			if failed := cmd.replace(s.from, s.to); failed != nil {
				err = failed
				break
			}
			restart = true
		}
		said.WriteString(s.outcomes)
		if changes {
			said.WriteString(cmd.details(s))
		}
	}
	switch {
	case cmd.DryRun:
		fmt.Fprintln(&said, "Nothing was changed: this is a dry run.")
	case restart:
		fmt.Fprintln(&said, "Restart the client: then it starts its servers anew.")
	}
	if _, failed := p.Out.Write(said.Bytes()); failed != nil {
		return failed
	}
	return err
}

// step changes the servers of a document. The error is that of a server that was named and stays as it is.
func (cmd *Adopt) step(d *document, c change) (next step, err error) {
	next = step{from: d, to: d}
	for i, s := range d.servers {
		if len(cmd.Server) > 0 && !slices.Contains(cmd.Server, s.name) {
			continue
		}
		var why string
		next.to, why = next.to.changed(i, c)
		if len(cmd.Server) > 0 && why != "" && why != isAdopted && why != notAdopted {
			err = cli.ErrFailed
		}
		next.outcomes += fmt.Sprintf("%s: %s: %s\n", visible(d.path), cli.Printable(s.name+s.where), cmd.outcome(s, cli.Printable(why)))
	}
	return next, err
}

// details shows the lines that a dry run would change, or says where there is a copy.
func (cmd *Adopt) details(s step) string {
	path := visible(s.from.path)
	if cmd.DryRun {
		return visibleLines(udiff.Unified(path, path, string(s.from.data), string(s.to.data)))
	}
	if _, err := os.Lstat(s.from.path + suffix); err != nil {
		return ""
	}
	return fmt.Sprintf("%s: before its first change, it was as in %s\n", path, filepath.Base(path)+suffix)
}

// outcome says what became of a server, or why it stays as it is.
func (cmd *Adopt) outcome(s server, why string) string {
	switch {
	case why == isAdopted || why == notAdopted:
		return why
	case why != "":
		return "left as it is: " + why
	case cmd.Undo && len(s.launch().dropped()) > 0:
		return "runs without mcpactor serve again, and without its " + cli.Printable(strings.Join(s.launch().dropped(), " "))
	case cmd.Undo:
		return "runs without mcpactor serve again"
	case s.launch().url != nil:
		return "adopted; if it needs a login, mcpactor opens the browser"
	}
	return "adopted"
}

// replace replaces a file, of which adopt keeps the first copy. Undo removes the copy if the file is the same again.
func (cmd *Adopt) replace(d, next *document) error {
	if !cmd.Undo {
		if err := keep(d); err != nil {
			return err
		}
	}
	if err := replace(d.path, d.data, next.data); err != nil {
		return err
	}
	if kept, err := os.ReadFile(d.path + suffix); err == nil && bytes.Equal(kept, next.data) {
		os.Remove(d.path + suffix) //nolint:errcheck // details says that it is still there
	}
	return nil
}
