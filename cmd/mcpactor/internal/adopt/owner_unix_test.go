//go:build unix

package adopt

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
)

func TestFileKeepsItsLinkItsModeAndItsOwner(t *testing.T) {
	u := newUser(t)
	real := u.writes("dotfiles/cursor.json", plain)
	require.NoError(t, os.Chmod(real, 0o640))
	if os.Getuid() == 0 {
		require.NoError(t, os.Chown(real, 12345, 12346))
	}
	path := filepath.Join(u.home, "mcp.json")
	require.NoError(t, os.Symlink(real, path))
	before, err := os.Stat(real)
	require.NoError(t, err)
	u.succeeds(path)
	require.Equal(t, adopted, u.reads(real))
	link, err := os.Readlink(path)
	require.NoError(t, err)
	require.Equal(t, real, link)
	for _, file := range []string{real, path + suffix} {
		after, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, before.Mode(), after.Mode())
		require.Equal(t, before.Sys().(*syscall.Stat_t).Uid, after.Sys().(*syscall.Stat_t).Uid)
		require.Equal(t, before.Sys().(*syscall.Stat_t).Gid, after.Sys().(*syscall.Stat_t).Gid)
	}
	left, err := filepath.Glob(filepath.Join(u.home, "*", ".mcpactor-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// losesRights continues without the rights of root, with the folders and some files of this user.
func (u *user) losesRights(files ...string) {
	if os.Getuid() != 0 {
		return
	}
	for _, path := range append(files, filepath.Dir(u.home), u.home, u.project) {
		require.NoError(u, os.Chown(path, 12345, -1))
	}
	require.NoError(u, syscall.Seteuid(12345))
	u.Cleanup(func() { require.NoError(u, syscall.Seteuid(0)) })
}

func TestFileOfAnotherGroupIsNotForTheGroupOfItsUser(t *testing.T) {
	u := newUser(t)
	if os.Getuid() != 0 {
		t.Skip("only root makes files of others")
	}
	path := u.writes("mcp.json", plain)
	require.NoError(t, os.Chown(path, 12345, 12346))
	require.NoError(t, os.Chmod(path, 0o664))
	others := u.writes("others.json", plain)
	require.NoError(t, os.Chmod(others, 0o666))
	u.losesRights()
	require.NoError(t, replace(path, []byte(plain), []byte(adopted)))
	require.Equal(t, adopted, u.reads(path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o604), info.Mode())

	err = replace(others, []byte(plain), []byte(adopted))
	require.EqualError(t, err, "others.json belongs to another user: run the command as this user")
	require.Equal(t, plain, u.reads(others))
}

func TestNothingChangesIfAFileMayNotBeWritten(t *testing.T) {
	u := newUser(t)
	project, users := u.writes("project/.mcp.json", plain), u.writes(".claude.json", plain)
	require.NoError(t, os.Chmod(users, 0o400))
	u.losesRights(project, users)
	cmd := Adopt{Client: "claude"}
	documents, err := cmd.documents()
	require.NoError(t, err)
	var said bytes.Buffer
	err = cmd.change(&cli.Program{Out: &said}, documents, adopter(installed))
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorContains(t, err, "nothing was changed: ")
	require.Empty(t, said.String())
	for _, path := range []string{project, users} {
		require.Equal(t, plain, u.reads(path))
		require.NoFileExists(t, path+suffix)
	}
}
