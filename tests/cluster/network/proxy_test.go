//go:build linux

package network_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/tests/cluster/network"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo starts a server that returns every line.
func echo(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					fmt.Fprintln(c, lines.Text())
				}
			}()
		}
	}()
	return l.Addr().String()
}

func TestNetworkIsCutBetweenTwoProcessesAndHealed(t *testing.T) {
	n := network.New()
	n.Name(os.Getpid(), "a")
	p, err := n.Listen("b", echo(t))
	require.NoError(t, err)
	defer p.Close()
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	defer c.Close()
	in := bufio.NewReader(c)
	answers := func(text string, within time.Duration) error {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(within)))
		line, err := in.ReadString('\n')
		if err == nil {
			require.Equal(t, text+"\n", line)
		}
		return err
	}
	send := func(text string) {
		_, err := fmt.Fprintln(c, text)
		require.NoError(t, err)
	}
	const quiet, patience = 50 * time.Millisecond, 10 * time.Second

	n.Cut("c", "b")
	send("1")
	require.NoError(t, answers("1", patience), "another process is cut off")

	n.Cut("a", "b")
	send("2")
	require.ErrorIs(t, answers("2", quiet), os.ErrDeadlineExceeded)
	n.Heal("a", "b")
	require.NoError(t, answers("2", patience), "what was held back arrives")

	n.Cut("b", "a")
	send("3")
	require.ErrorIs(t, answers("3", quiet), os.ErrDeadlineExceeded)
	n.Heal("b", "a")
	require.NoError(t, answers("3", patience))

	n.Cut("a", "b")
	again, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	defer again.Close()
	_, err = fmt.Fprintln(again, "4")
	require.NoError(t, err)
	require.NoError(t, again.SetReadDeadline(time.Now().Add(quiet)))
	_, err = again.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "a new connection is cut off as well")
}

func TestProxyOfAProcessThatDoesNotListenClosesTheConnection(t *testing.T) {
	p, err := network.New().Listen("b", "127.0.0.1:1")
	require.NoError(t, err)
	defer p.Close()
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}
