//go:build packages

package packages

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// engine returns podman with folders of its own.
func engine(t *testing.T) (command func(args ...string) *exec.Cmd) {
	t.Helper()
	folder := filepath.Join(temp, "podman")
	t.Cleanup(func() { syscall.Unmount(filepath.Join(folder, "root", "vfs"), syscall.MNT_DETACH) })
	return func(args ...string) *exec.Cmd {
		return exec.Command("podman", slices.Concat(
			[]string{"--storage-driver=vfs", "--root=" + filepath.Join(folder, "root"), "--runroot=" + filepath.Join(folder, "run"), "--runtime=runc"}, args)...)
	}
}

// The user of the image is not root, and can write to its home.
func TestImageServesClientsOutsideOfIt(t *testing.T) {
	podman := engine(t)
	podmanSays := func(args ...string) string {
		cmd := podman(args...)
		return strings.TrimSpace(execute(t, cmd.Args[0], cmd.Args[1:]...))
	}
	require.NoError(t, podman("pull", "oci:"+file("image")).Run())
	image := podmanSays("images", "--quiet")
	require.Equal(t, "65532:65532", podmanSays("image", "inspect", "--format={{.User}}", image))

	const token = "0123456789abcdef0123456789abcdef"
	address := freeAddress(t)
	upstream := strings.Replace(greeter(t), "127.0.0.1", "10.0.2.2", 1) // this machine, seen from the network of the container
	cmd := podman("run", "--rm", "--name=served", "--network=slirp4netns:allow_host_loopback=true", "--publish="+address+":8090",
		"--env=MCPACTOR_SERVE_TOKEN="+token, "--ulimit=nofile=20000:20000", "--ulimit=nproc=1000:1000",
		image, "serve", "--listen", "0.0.0.0:8090", upstream)
	t.Cleanup(func() { podman("rm", "--force", "--ignore", "--time=0", "served").Run() }) // it outlives podman
	requireServed(t, cmd, address, token, "greet")
	require.Contains(t, podmanSays("exec", "served", "mcpactor", "version"), version(t))
	certificates := filepath.Join(t.TempDir(), "certificates")
	podmanSays("cp", "served:/etc/ssl/certs/ca-certificates.crt", certificates)
	text, err := os.ReadFile(certificates)
	require.NoError(t, err)
	require.Greater(t, bytes.Count(text, []byte("-----BEGIN CERTIFICATE-----\n")), 100)

	podmanSays("stop", "--time=10", "served")
	require.NoError(t, cmd.Wait(), "it ends at SIGTERM by itself")
	require.Empty(t, podmanSays("ps", "--all", "--quiet"))
}
