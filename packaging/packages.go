package main

import (
	"io"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // nfpm.Get finds it
	_ "github.com/goreleaser/nfpm/v2/rpm" // nfpm.Get finds it
)

// npm writes the package mcpactor, which starts the program, and for each platform a package with the program. Of these, npm installs only
// the one for the machine.
func (r *release) npm() error {
	for _, t := range r.targets {
		name := "mcpactor-" + t.NodeOS() + "-" + t.NodeCPU()
		if err := r.npmPackage(name, t, []file{t.program}, "npm/platform/package.json.tmpl"); err != nil {
			return err
		}
	}
	launcher, err := r.file("npm/mcpactor.js", nil)
	if err != nil {
		return err
	}
	launcher.mode = 0o755
	return r.npmPackage("mcpactor", nil, []file{launcher}, "npm/package.json.tmpl", "npm/README.md")
}

// npmPackage writes a package in the form in which npm publishes one: everything is in a folder.
func (r *release) npmPackage(name string, t *target, files []file, paths ...string) error {
	files, err := r.files(t, files, append(paths, "../LICENSE")...)
	if err != nil {
		return err
	}
	for i := range files {
		files[i].name = "package/" + files[i].name
	}
	return r.create("npm/"+name+".tgz", func(w io.Writer) error { return writeTarball(w, files, r.time) })
}

// linuxPackages writes the packages for Debian and for distributions with RPM, as nfpm.yaml describes them.
func (r *release) linuxPackages() error {
	for _, t := range r.targets {
		if t.OS != "linux" {
			continue
		}
		values := map[string]string{"VERSION": r.version, "ARCH": t.Arch, "WORK": r.work}
		config, err := nfpm.ParseFileWithEnvMapping("nfpm.yaml", func(name string) string { return values[name] })
		if err != nil {
			return err
		}
		for _, format := range []string{"deb", "rpm"} {
			info, err := config.Get(format)
			if err != nil {
				return err
			}
			info.MTime = r.time
			packager, err := nfpm.Get(format)
			if err != nil {
				return err
			}
			info = nfpm.WithDefaults(info)
			if err := r.create("mcpactor_"+t.String()+"."+format, func(w io.Writer) error { return packager.Package(info, w) }); err != nil {
				return err
			}
		}
	}
	return nil
}
