//go:build real

package cluster_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cluster"
)

// The command of the page makes certificates with which members find each other.
func TestCertificatesForTryingAreAccepted(t *testing.T) {
	page, err := os.ReadFile("../docs/cluster.md")
	require.NoError(t, err)
	command := regexp.MustCompile(`(?m)^CAROOT=.*$`).FindString(string(page))
	require.Contains(t, command, " 10.0.0.1")
	t.Chdir(t.TempDir())
	output, err := exec.Command("sh", "-c", strings.Replace(command, "10.0.0.1", "127.0.0.1", 1)).CombinedOutput()
	require.NoError(t, err, "%s", output)
	s, hub := newCounters(t), cluster.NewInProcess()
	cfg := func(name string) cluster.Config {
		c := inProcess(hub, name)
		c.TLS = &cluster.TLS{CertFile: "member.pem", KeyFile: "member.key", CAFile: "rootCA.pem"}
		return c
	}
	members := s.startAll(t, cfg("a"), cfg("b"))
	on := map[string]bool{}
	for i := range 20 {
		on[call(t, members[0], fmt.Sprint(i)).Supervisor] = true
	}
	require.Len(t, on, 2)
}
