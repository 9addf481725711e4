package cluster

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/supervisor"
)

// logged is the lines of a log.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// await waits for a line that has all of some texts.
func (l *logged) await(t *testing.T, texts ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		for line := range strings.Lines(l.text.String()) {
			has := true
			for _, text := range texts {
				has = has && strings.Contains(line, text)
			}
			if has {
				return true
			}
		}
		return false
	}, 20*time.Second, 10*time.Millisecond, "%v", texts)
}

// startHosts starts a cluster of hosts, which stop with the test. The first one writes to a log.
func startHosts(t *testing.T, n int, log *logged) []*Member {
	t.Helper()
	var hosts []string
	for range n {
		addr, err := clusterapi.FreeAddr("127.0.0.1")
		require.NoError(t, err)
		hosts = append(hosts, addr)
	}
	members, dir := make([]*Member, n), t.TempDir()
	var wait sync.WaitGroup
	for i := range members {
		logger := zerolog.Nop()
		if i == 0 {
			logger = zerolog.New(log)
		}
		wait.Go(func() {
			m, err := Start(t.Context(), actor.NewActorSystem(), Config{
				Supervisor: supervisor.Config{Servers: []supervisor.Server{{Name: "s", URL: "http://127.0.0.1:1"}}, Logger: logger},
				Member:     fmt.Sprint("m", i), Listen: hosts[i], Hosts: hosts, Directory: dir, Lease: time.Second,
			})
			if members[i] = m; err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	require.False(t, t.Failed())
	t.Cleanup(func() {
		for _, m := range members {
			wait.Go(func() { m.Stop(t.Context()) })
		}
		wait.Wait()
	})
	return members
}

// Two of three hosts end without leaving, one after the other.
func TestRunningMemberSaysWhomItDoesNotReachAndWhatItWaitsFor(t *testing.T) {
	log := new(logged)
	members := startHosts(t, 3, log)
	hosts := members[0].cfg.Hosts
	members[2].network.close()
	log.await(t, `"member does not reach others"`, `"why":"`+hosts[2]+": ")
	members[1].network.close()
	log.await(t, `"member waits"`, "more than half of the hosts that ran last must run", "not heard: "+hosts[1]+", "+hosts[2]+"; ", hosts[1]+": connection ")
}
