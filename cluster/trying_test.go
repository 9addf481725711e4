//go:build real && unix

package cluster_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
)

// commandOfThePage returns the command that begins with some words, to be run in a new directory, which becomes the current one.
func commandOfThePage(t *testing.T, words string) *exec.Cmd {
	t.Helper()
	page, err := os.ReadFile("../docs/cluster.md")
	require.NoError(t, err)
	command := regexp.MustCompile(`(?m)^` + words + `.*$`).FindString(string(page))
	require.NotEmpty(t, command)
	t.Chdir(t.TempDir())
	return exec.Command("sh", "-c", command)
}

// use has two members answer calls.
func use(t *testing.T, cfg func(name string) cluster.Config) {
	t.Helper()
	members := newCounters(t).startAll(t, cfg("a"), cfg("b"))
	on := map[string]bool{}
	for i := range 20 {
		on[call(t, members[0], fmt.Sprint(i)).Supervisor] = true
	}
	require.Len(t, on, 2)
}

// The command of the page makes certificates with which members find each other.
func TestCertificatesForTryingAreAccepted(t *testing.T) {
	output, err := commandOfThePage(t, "CAROOT=").CombinedOutput()
	require.NoError(t, err, "%s", output)
	hub := cluster.NewInProcess()
	use(t, func(name string) cluster.Config {
		c := inProcess(hub, name)
		c.TLS = &cluster.TLS{CertFile: "member.pem", KeyFile: "member.key", CAFile: "rootCA.pem"}
		return c
	})
}

// The command of the page starts an etcd on which members agree, of the version that the members are built with.
func TestEtcdForTryingIsEnough(t *testing.T) {
	required, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	version := regexp.MustCompile(`go\.etcd\.io/etcd/client/v3 (v\S+)`).FindSubmatch(required)
	require.NotNil(t, version)
	command := commandOfThePage(t, "go get go.etcd.io/etcd/server/v3@"+string(version[1]))
	output, err := exec.Command("go", "mod", "init", "try").CombinedOutput()
	require.NoError(t, err, "%s", output)
	var urls [2]string // for clients, and for other servers
	for i := range urls {
		address, err := clusterapi.FreeAddr("127.0.0.1")
		require.NoError(t, err)
		urls[i] = "http://" + address
	}
	command.Env = append(os.Environ(),
		"ETCD_LISTEN_CLIENT_URLS="+urls[0], "ETCD_ADVERTISE_CLIENT_URLS="+urls[0], "ETCD_LISTEN_PEER_URLS="+urls[1],
		"ETCD_INITIAL_ADVERTISE_PEER_URLS="+urls[1], "ETCD_INITIAL_CLUSTER=default="+urls[1])
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		command.Wait()
	})
	require.Eventually(t, func() bool { // it is compiled first
		conn, err := net.Dial("tcp", strings.TrimPrefix(urls[0], "http://"))
		return err == nil && conn.Close() == nil
	}, 4*time.Minute, 100*time.Millisecond)
	use(t, func(name string) cluster.Config {
		return cluster.Config{Member: name, Etcd: cluster.Etcd{Endpoints: urls[:1]}}
	})
}
