package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// asProgram is set in the environment of a process that is the program.
const asProgram = "CLUSTER_TEST_ETCD"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// start starts the program, and returns its address and its standard input.
func start(t *testing.T, args ...string) (cmd *exec.Cmd, addr string, in io.Closer) {
	t.Helper()
	cmd = exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return cmd, strings.TrimSpace(line), in
}

func TestDataSurvivesAKill(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	cmd, addr, _ := start(t, "-dir", dir)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer client.Close()
	_, err = client.Put(ctx, "a", "1")
	require.NoError(t, err)

	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	cmd, again, in := start(t, "-dir", dir, "-client", addr)
	require.Equal(t, addr, again)
	got, err := client.Get(ctx, "a")
	require.NoError(t, err)
	require.Len(t, got.Kvs, 1)
	require.Equal(t, "1", string(got.Kvs[0].Value))

	require.NoError(t, in.Close(), "which ends the program")
	require.NoError(t, cmd.Wait())
}
