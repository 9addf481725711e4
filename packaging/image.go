package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"io"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user owns the home in the image, and is its user in image.json.tmpl. Kubernetes can tell that a number is not root's, but not of a name.
const user = 65532

// image writes an image from scratch with the program for each processor under Linux, as a folder in the layout of the OCI.
func (r *release) image() error {
	images := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, t := range r.targets {
		if t.OS != "linux" {
			continue
		}
		image, err := r.imageOf(t)
		if err != nil {
			return err
		}
		images = mutate.AppendManifests(images, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: t.OS, Architecture: t.Arch}},
		})
	}
	folder, err := layout.Write(filepath.Join(r.out, "image"), empty.Index)
	if err != nil {
		return err
	}
	return folder.AppendIndex(images)
}

// imageOf returns an image with the program, the certificates with which it checks servers, and folders that it can write to.
func (r *release) imageOf(t *target) (v1.Image, error) {
	program := t.program
	program.name = "usr/local/bin/mcpactor"
	var content bytes.Buffer
	err := writeTar(&content, []file{
		program,
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: certificates()},
		{name: "home/mcpactor/", mode: 0o700, owner: user},
		{name: "tmp/", mode: 0o1777},
	}, r.time)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layer)
	if err != nil {
		return nil, err
	}
	settings, err := r.file("image.json.tmpl", t)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = t.OS, t.Arch, v1.Time{Time: r.time}
	if err := json.Unmarshal(settings.data, &config.Config); err != nil {
		return nil, err
	}
	return mutate.ConfigFile(mutate.ConfigMediaType(image, types.OCIConfigJSON), config)
}

// certificates are the roots that Mozilla trusts without a condition: this file cannot express one.
func certificates() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return text.Bytes()
}
