package stdio

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
)

func init() {
	testServers["owner of a cleanup"] = func() {
		c, err := New(withCleanup(os.Getenv("TEST_DIR"), "exec sleep 60", `touch "$1"`)).Connect(&transport.Session{Cut: context.Background()})
		if err != nil {
			panic(err)
		}
		printLine(c.(*conn).process.cmd.Process.Pid)
		linger()
	}
}

// withCleanup returns a server that runs a script, and has another one as its cleanup. $1 is a file in dir with the name of the
// session.
func withCleanup(dir, script, cleanup string) *mcpbridge.Server {
	name := filepath.Join(dir, mcpbridge.SessionMark)
	return &mcpbridge.Server{
		Name: "test", Command: "sh", Args: []string{"-c", script, "sh", name},
		Cleanup: mcpbridge.Cleanup{Command: "sh", Args: []string{"-c", cleanup, "sh", name}, Records: filepath.Join(dir, "records")},
	}
}

func connect(t *testing.T, srv *mcpbridge.Server) *conn {
	t.Helper()
	c, err := New(srv).Connect(&transport.Session{Cut: t.Context()})
	require.NoError(t, err)
	return c.(*conn)
}

// sessionsIn returns the names of the sessions for which scripts have made files in a directory.
func sessionsIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "mcpactor-*"))
	require.NoError(t, err)
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names
}

func recordsIn(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "records", "*", "*"))
	require.NoError(t, err)
	return paths
}

func TestCleanupRunsWhenTheProcessesOfASessionHaveEnded(t *testing.T) {
	dir := t.TempDir()
	srv := withCleanup(dir, `touch "$1"; exec cat`, `mv "$1" "$1.cleaned"`)
	for name, end := range map[string]func(*conn){
		"closed": func(*conn) {},
		"killed": func(c *conn) { c.Kill() },
		"exited": func(c *conn) { syscall.Kill(c.process.cmd.Process.Pid, syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			before := len(sessionsIn(t, dir))
			c := connect(t, srv)
			require.Len(t, recordsIn(t, dir), 1)
			require.Eventually(t, func() bool { return len(sessionsIn(t, dir)) == before+1 }, 5*time.Second, time.Millisecond)
			end(c)
			require.NoError(t, c.Close(t.Context()))
			require.False(t, alive(c.process.cmd.Process.Pid))
			for _, session := range sessionsIn(t, dir) {
				require.True(t, strings.HasSuffix(session, ".cleaned"), session)
			}
			require.Empty(t, recordsIn(t, dir))
			require.NoError(t, c.Close(t.Context()), "twice is fine")
		})
	}
}

func TestCleanupThatFailsIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	c := connect(t, withCleanup(dir, "exec cat", `[ -e "$1" ] || { echo no daemon >&2; exit 3; }`))
	err := c.Close(t.Context())
	require.ErrorContains(t, err, "cleanup: exited with status 3: no daemon")
	records := recordsIn(t, dir)
	require.Len(t, records, 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(records[0])), nil, 0o600))
	require.NoError(t, c.Close(t.Context()))
	require.Empty(t, recordsIn(t, dir))
}

// It need not be the start of another process.
func TestCleanupThatHasFailedIsTriedAtTheNextStart(t *testing.T) {
	dir := t.TempDir()
	srv := withCleanup(dir, "exec cat", `[ -e "$1" ] || exit 3`)
	c := connect(t, srv)
	require.Error(t, c.Close(t.Context()))
	records := recordsIn(t, dir)
	require.Len(t, records, 1)
	require.NoError(t, os.Chtimes(records[0], time.Time{}, time.Now().Add(-startLimit)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(records[0])), nil, 0o600))
	ended, err := New(srv).(transport.Recoverer).Recover(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, ended)
	require.Empty(t, recordsIn(t, dir))
	require.NoError(t, c.Close(t.Context()), "it has nothing left to do")
}

// What has ended a moment ago may be in a state that its engine refuses to remove.
func TestCleanupIsTriedSeveralTimes(t *testing.T) {
	dir := t.TempDir()
	c := connect(t, withCleanup(dir, "exec cat", `[ -e "$1" ] || { touch "$1"; exit 1; }`))
	require.NoError(t, c.Close(t.Context()))
	require.Empty(t, recordsIn(t, dir))
}

// An engine may need longer than the processes of the session.
func TestHalfOfTheTimeIsForTheCleanup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		require.Equal(t, 10*time.Second, new(process).timeToEnd(ctx))
		require.Equal(t, 5*time.Second, (&process{after: new(cleanup)}).timeToEnd(ctx))
	})
}

func TestCleanupThatHangsIsKilled(t *testing.T) {
	srv := withCleanup(t.TempDir(), "exec cat", `trap '' TERM; sleep 60 & sleep 60`)
	srv.Cleanup.Timeout = 100 * time.Millisecond
	c := connect(t, srv)
	within(t, 10*time.Second, func() { require.ErrorContains(t, c.Close(t.Context()), "cleanup: was killed after 100ms") })

	srv.Cleanup.Timeout = 2 * time.Second
	c = connect(t, srv)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	within(t, 10*time.Second, func() { require.ErrorContains(t, c.Close(ctx), "has not ended yet") })
	<-c.process.after.tried
}

func TestSessionsOfAKilledProcessAreCleanedUpAtTheNextStart(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TEST_DIR", dir)
	_, pids, kill := owner(t, "owner of a cleanup")
	srv := withCleanup(dir, "exec sleep 60", `touch "$1"`)
	server := New(srv).(transport.Recoverer)

	ended, err := server.Recover(t.Context())
	require.NoError(t, err)
	require.Zero(t, ended, "its process lives")
	records := recordsIn(t, dir)
	require.Len(t, records, 1)

	kill()
	requireGone(t, pids...)
	require.NoError(t, os.Chtimes(records[0], time.Time{}, time.Now().Add(-startLimit)))
	other := *srv
	other.Cleanup.Args = append([]string{"-e"}, srv.Cleanup.Args...)
	ended, err = New(&other).(transport.Recoverer).Recover(t.Context())
	require.NoError(t, err)
	require.Zero(t, ended, "it is of another cleanup")

	stranger := filepath.Join(filepath.Dir(records[0]), ".DS_Store")
	require.NoError(t, os.WriteFile(stranger, nil, 0o600))
	require.NoError(t, os.Chtimes(stranger, time.Time{}, time.Now().Add(-startLimit)))
	renamed := *srv
	renamed.Name, renamed.Command, renamed.Dir = "renamed", "another", filepath.Join(dir, "removed")
	ended, err = New(&renamed).(transport.Recoverer).Recover(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, ended, "only the cleanup matters")
	require.Equal(t, []string{filepath.Base(records[0])}, sessionsIn(t, dir))
	require.NoFileExists(t, records[0])
	require.FileExists(t, stranger, "a file of others is no record")

	ended, err = server.Recover(t.Context())
	require.NoError(t, err)
	require.Zero(t, ended)
}

// A daemon may make a container after its client was killed, and therefore after the first cleanup.
func TestSessionsThatHadJustStartedAreCleanedUpTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		srv := withCleanup(dir, "exec cat", `echo >> "$1"`)
		records, err := recordsOf(srv)
		require.NoError(t, err)
		record := filepath.Join(records, "mcpactor-new")
		require.NoError(t, os.WriteFile(record, nil, 0o600))
		require.NoError(t, os.Chtimes(record, time.Time{}, time.Now().Add(-time.Second)))

		ctx, cancel := context.WithTimeout(t.Context(), startLimit/2)
		defer cancel()
		ended, err := recoverSessions(ctx, srv)
		require.NoError(t, err)
		require.Zero(t, ended)
		require.FileExists(t, record, "the next start goes on")

		ended, err = recoverSessions(t.Context(), srv)
		require.NoError(t, err)
		require.Equal(t, 1, ended)
		require.NoFileExists(t, record)
		lines, err := os.ReadFile(filepath.Join(dir, "mcpactor-new"))
		require.NoError(t, err)
		require.Equal(t, "\n\n\n", string(lines), "one, then two")
	})
}

func TestRecordsArePrivate(t *testing.T) {
	dir := t.TempDir()
	srv := withCleanup(dir, "exec cat", "true")
	srv.Env = map[string]string{"TOKEN": "hunter22"}
	c := connect(t, srv)
	for _, path := range append(recordsIn(t, dir), filepath.Join(dir, "records")) {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, path)
		if !info.IsDir() {
			require.Zero(t, info.Size(), "a record is its name")
		}
	}
	require.NoError(t, c.Close(t.Context()))

	require.NoError(t, os.Chmod(filepath.Join(dir, "records"), 0o755))
	_, err := New(srv).Connect(&transport.Session{Cut: t.Context()})
	require.ErrorContains(t, err, "other users may access")
}

// A start that fails leaves no record.
func TestSessionThatDoesNotStartHasNoCleanup(t *testing.T) {
	dir := t.TempDir()
	srv := withCleanup(dir, "", `touch "$1"`)
	srv.Command = "/nope"
	_, err := New(srv).Connect(&transport.Session{Cut: t.Context()})
	require.ErrorContains(t, err, "/nope")
	require.Empty(t, recordsIn(t, dir))
	require.Empty(t, sessionsIn(t, dir))
}
