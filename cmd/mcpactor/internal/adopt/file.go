package adopt

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// suffix is that of the copy of a file as it was before it was changed for the first time.
const suffix = ".before-mcpactor"

// keep keeps the content of a file in a copy. If there is one, and a server is adopted, the older one is closer to what the user has written.
func keep(d *document) error {
	isAdopted := slices.ContainsFunc(d.servers, func(s server) bool { return s.launch().before > 0 })
	if _, err := os.Lstat(d.path + suffix); isAdopted && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return write(d.path+suffix, d.path, d.data, nil)
}

// replace replaces the content of a file, unless it has changed since it was read: clients write their files, too. A link to it stays.
func replace(path string, was, data []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	return write(path, path, data, func() error {
		if is, err := os.ReadFile(path); err != nil || !bytes.Equal(is, was) {
			return cmp.Or(err, fmt.Errorf("%s has changed meanwhile: run the command again", visible(path)))
		}
		return nil
	})
}

// checkWritable checks the permission to write a file, which a rename does not need.
func checkWritable(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return file.Close()
}

// write writes a file with the mode and the owner of another one, unless a check of the last moment fails. Who reads it meanwhile sees the
// whole file before or after.
func write(path, like string, data []byte, check func() error) error {
	info, err := os.Stat(like)
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".mcpactor-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) //nolint:errcheck // it is there only after another error
	_, err = temporary.Write(data)
	err = errors.Join(err, temporary.Chmod(info.Mode().Perm()), keepOwner(temporary, info), temporary.Sync(), temporary.Close())
	if err == nil && check != nil {
		err = check()
	}
	if err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
