package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"
)

// file is a file in an archive, or a folder if the name ends in a slash.
type file struct {
	name  string
	mode  int64
	owner int
	data  []byte
}

// file reads a file. One that ends in .tmpl is a template, which gets the release and a target.
func (r *release) file(path string, t *target) (file, error) {
	data, err := os.ReadFile(path)
	name, isTemplate := strings.CutSuffix(filepath.Base(path), ".tmpl")
	if err != nil || !isTemplate {
		return file{name: name, mode: 0o644, data: data}, err
	}
	text, err := template.New(path).Parse(string(data))
	if err != nil {
		return file{}, err
	}
	var b bytes.Buffer
	err = text.Execute(&b, map[string]any{"Version": r.version, "Sums": r.sums, "Targets": r.targets, "Target": t})
	return file{name: name, mode: 0o644, data: b.Bytes()}, err
}

// files adds files to others.
func (r *release) files(t *target, all []file, paths ...string) ([]file, error) {
	for _, path := range paths {
		f, err := r.file(path, t)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// contents are the files beside the program in the archive for a platform.
var contents = map[string][]string{
	"linux":   {"../LICENSE", "../README.md", "systemd/mcpactor.service"},
	"darwin":  {"../LICENSE", "../README.md", "launchd/mcpactor.plist"},
	"windows": {"../LICENSE", "../README.md"},
}

// archives writes the archive of each platform.
func (r *release) archives() error {
	for _, t := range r.targets {
		files, err := r.files(t, []file{t.program}, contents[t.OS]...)
		if err != nil {
			return err
		}
		write, extension := writeTarball, ".tar.gz"
		if t.OS == "windows" {
			write, extension = writeZip, ".zip"
		}
		if err := r.create("mcpactor_"+t.String()+extension, func(w io.Writer) error { return write(w, files, r.time) }); err != nil {
			return err
		}
	}
	return nil
}

func writeTarball(w io.Writer, files []file, at time.Time) error {
	z := gzip.NewWriter(w)
	return errors.Join(writeTar(z, files, at), z.Close())
}

func writeTar(w io.Writer, files []file, at time.Time) error {
	archive := tar.NewWriter(w)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.data)), ModTime: at, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(f.data); err != nil {
			return err
		}
	}
	return archive.Close()
}

func writeZip(w io.Writer, files []file, at time.Time) error {
	archive := zip.NewWriter(w)
	for _, f := range files {
		into, err := archive.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at})
		if err != nil {
			return err
		}
		if _, err := into.Write(f.data); err != nil {
			return err
		}
	}
	return archive.Close()
}
