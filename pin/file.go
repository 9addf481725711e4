package pin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mcpactor/mcpactor/internal/definition"
	"github.com/mcpactor/mcpactor/internal/visible"
)

// format is the version of the format of the file.
const format = 1

// file is what a lock file has.
type file struct {
	Version int `json:"version"`
	*Lock
}

// Read reads a lock file. The error for a missing file is [io/fs.ErrNotExist].
func Read(path string) (*Lock, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	l, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

func parse(data []byte) (*Lock, error) {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, located(err, data)
	}
	if head.Version != format {
		return nil, fmt.Errorf("version: must be %d, and is %d", format, head.Version)
	}
	l := &Lock{}
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&file{Lock: l}); err != nil {
		return nil, located(err, data)
	}
	if l.Servers == nil { // or else everything would be new
		return nil, errors.New("servers: is missing")
	}
	for name, its := range l.Servers {
		if its == nil {
			return nil, fmt.Errorf("servers.%s: must be an object, and is null", visible.Escape(name))
		}
		if err := its.canonical(); err != nil {
			return nil, fmt.Errorf("servers.%s.%w", visible.Escape(name), err)
		}
	}
	return l, nil
}

// located returns an error of package json with the line and the field where it is.
func located(err error, data []byte) error {
	line := func(offset int64) int { return 1 + bytes.Count(data[:offset], []byte("\n")) }
	if syntax, is := errors.AsType[*json.SyntaxError](err); is {
		return fmt.Errorf("line %d: %w", line(syntax.Offset), err)
	}
	if other, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		return fmt.Errorf("line %d: %s: is of the wrong type: %s", line(other.Offset), cmp.Or(visible.Escape(other.Field[strings.LastIndex(other.Field, ".")+1:]), "the file"), other.Value)
	}
	return err
}

// canonical makes the texts of all definitions those that the digests are of. A text in the file is indented.
func (s *Server) canonical() error {
	if s.Instructions != nil {
		if err := s.Instructions.canonical(); err != nil {
			return fmt.Errorf("instructions.%w", err)
		}
	}
	for _, k := range []kind{tool, prompt} {
		for name, d := range k.of(s) {
			if err := d.canonical(); err != nil {
				return fmt.Errorf("%ss.%s.%w", k, visible.Escape(name), err)
			}
			k.of(s)[name] = d
		}
	}
	return nil
}

func (d *Definition) canonical() error {
	text := definition.Of(d.Text)
	if text == "" || text.Digest() != d.Digest {
		return errors.New("digest: is not that of the text: the file was changed by hand")
	}
	d.Text = json.RawMessage(text)
	return nil
}

// Write writes a lock file for version control: equal locks give the same bytes, and characters that cannot be seen are escaped. Who reads
// the file meanwhile sees the whole file before or after.
func (l *Lock) Write(path string) error {
	its := file{format, cmp.Or(l, &Lock{})}
	if its.Servers == nil {
		its.Lock = &Lock{RefuseNew: its.RefuseNew, Servers: map[string]*Server{}}
	}
	var data bytes.Buffer
	e := json.NewEncoder(&data)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(its); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".mcpactor-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) //nolint:errcheck // it is there only after an error
	_, err = temporary.Write(escaped(data.Bytes()))
	if err = errors.Join(err, temporary.Chmod(mode), temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}

// escaped returns JSON in which the characters that cannot be seen are escapes.
func escaped(data []byte) []byte {
	var visible []byte
	for _, r := range string(data) {
		if r < utf8.RuneSelf && r != 0x7f || strconv.IsPrint(r) {
			visible = utf8.AppendRune(visible, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			visible = fmt.Appendf(visible, `\u%04x`, unit)
		}
	}
	return visible
}
