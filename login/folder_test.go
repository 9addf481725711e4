package login_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/login"
)

// Processes of the tests of a folder are this program with one of these variables, which has the path.
const (
	countsIn = "MCPACTOR_TEST_COUNTS_IN" // it adds one to what is kept, ten times
	holdsIn  = "MCPACTOR_TEST_HOLDS_IN"  // it claims the login, says so, and keeps it
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(countsIn); folder != "" {
		countIn(login.Folder(folder))
	} else if folder := os.Getenv(holdsIn); folder != "" {
		_, err := login.Folder(folder).Claim(context.Background(), "a")
		fmt.Println("claimed", err)
		select {}
	}
	os.Exit(m.Run())
}

func countIn(f login.Folder) {
	for range 10 {
		c, err := f.Claim(context.Background(), "a")
		if err != nil {
			panic(err)
		}
		data, err := c.Load(context.Background())
		if err != nil {
			panic(err)
		}
		n, _ := strconv.Atoi(string(data))
		if err := c.Save(context.Background(), []byte(strconv.Itoa(n+1))); err != nil {
			panic(err)
		}
		c.Release()
	}
	os.Exit(0)
}

// process returns this program with a variable.
func process(t *testing.T, variable, value string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), program)
	c.Env = append(os.Environ(), variable+"="+value)
	c.Stderr = os.Stderr
	return c
}

func TestProcessesClaimALoginOneAfterTheOther(t *testing.T) {
	folder, all := t.TempDir(), make([]*exec.Cmd, 4)
	for i := range all {
		all[i] = process(t, countsIn, folder)
		require.NoError(t, all[i].Start())
	}
	for _, one := range all {
		require.NoError(t, one.Wait())
	}
	data, err := login.Folder(folder).Load(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "40", string(data))
}

func TestClaimEndsWithItsProcess(t *testing.T) {
	f := login.Folder(t.TempDir())
	holder := process(t, holdsIn, string(f))
	said, err := holder.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, holder.Start())
	line, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "claimed <nil>\n", line)
	soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = f.Claim(soon, "a")
	require.ErrorIs(t, err, context.DeadlineExceeded)

	require.NoError(t, holder.Process.Kill())
	require.Error(t, holder.Wait())
	soon, cancel = context.WithTimeout(t.Context(), 10*time.Second) // on a busy machine
	defer cancel()
	c, err := f.Claim(soon, "a")
	require.NoError(t, err)
	c.Release()
}

// Logins of earlier versions are found: the file of a URL has its SHA-256 as its name.
func TestFilesOfLoginsAreAsBefore(t *testing.T) {
	const url = "https://example.com/mcp"
	f := login.Folder(filepath.Join(t.TempDir(), "logins"))
	path := filepath.Join(string(f), fmt.Sprintf("%x", sha256.Sum256([]byte(url))))
	c, err := f.Claim(t.Context(), url)
	require.NoError(t, err)
	require.NoError(t, c.Save(t.Context(), []byte(`{"Server":"x"}`)))
	c.Release()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, `{"Server":"x"}`, string(data))

	require.NoError(t, os.WriteFile(path, []byte("written before"), 0o600))
	data, err = f.Load(t.Context(), url)
	require.NoError(t, err)
	require.Equal(t, "written before", string(data))
	entries, err := os.ReadDir(string(f))
	require.NoError(t, err)
	require.Len(t, entries, 2, "the login and its lock")
	if runtime.GOOS == "windows" {
		return // it has no such modes
	}
	for _, one := range append([]string{string(f)}, path, path+".refresh.lock") {
		info, err := os.Stat(one)
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, one)
	}
}

func TestTokenOfAProcessThatDiesWhileItWritesDoesNotStay(t *testing.T) {
	f := login.Folder(t.TempDir())
	l := newLogin(t, login.Config{ID: "a", Store: f})
	left := filepath.Join(string(f), fmt.Sprintf("%x.new", sha256.Sum256([]byte("a"))))
	for _, keep := range []bool{true, false} {
		require.NoError(t, os.WriteFile(left, []byte("the beginning of a longer login"), 0o600))
		if keep {
			require.NoError(t, l.Keep(t.Context(), &login.Record{Machine: true, Client: &oauth2.Config{ClientID: "c"}, Token: &oauth2.Token{AccessToken: "a"}}))
			r, err := l.Kept(t.Context())
			require.NoError(t, err)
			require.Equal(t, "c", r.Client.ClientID)
		} else {
			found, err := l.Forget(t.Context())
			require.NoError(t, err)
			require.True(t, found)
		}
		require.NoFileExists(t, left)
	}
	require.NoError(t, os.WriteFile(left, nil, 0o600))
	found, err := l.Forget(t.Context())
	require.NoError(t, err)
	require.False(t, found)
	require.NoFileExists(t, left)
}

// The disk may be full, or the folder read-only: the refresh token is used only if the new one can be kept.
func TestRefreshTokenIsNotUsedIfTheNextOneCannotBeKept(t *testing.T) {
	a := newAuthority(t)
	f := login.Folder(t.TempDir())
	l := newLogin(t, login.Config{ID: "a", Store: f})
	require.NoError(t, l.Keep(t.Context(), kept(a, newSite(t, a.URL), time.Now().Add(-time.Minute))))
	obstacle := filepath.Join(string(f), fmt.Sprintf("%x.new", sha256.Sum256([]byte("a"))))
	require.NoError(t, os.Mkdir(obstacle, 0o700))
	_, err := l.Token()
	require.ErrorContains(t, err, "the login cannot be kept: ")
	require.Empty(t, a.requests())
	require.NoError(t, os.Remove(obstacle))
	token, err := l.Token()
	require.NoError(t, err)
	require.Equal(t, "access-1", token.AccessToken)
}

// Without its lock a login can be read, as from a folder that is mounted read-only: it works until its token has to be renewed.
func TestLoginThatCannotBeClaimedIsRead(t *testing.T) {
	f := login.Folder(t.TempDir())
	data, err := f.Load(t.Context(), "a")
	require.NoError(t, err)
	require.Nil(t, data)
	entries, err := os.ReadDir(string(f))
	require.NoError(t, err)
	require.Empty(t, entries, "reading writes nothing")

	file := filepath.Join(string(f), fmt.Sprintf("%x", sha256.Sum256([]byte("a"))))
	require.NoError(t, os.WriteFile(file, []byte("kept"), 0o600))
	require.NoError(t, os.Mkdir(file+".refresh.lock", 0o700))
	_, err = f.Claim(t.Context(), "a")
	require.ErrorContains(t, err, "the lock of the login: ")
	data, err = f.Load(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "kept", string(data))

	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Mkdir(file, 0o700))
	_, err = newLogin(t, login.Config{ID: "a", Store: f}).Token()
	require.ErrorContains(t, err, "the store of logins: ")

	_, err = login.Folder("").Claim(t.Context(), "a")
	require.EqualError(t, err, "the path of the folder of logins is empty")
}
