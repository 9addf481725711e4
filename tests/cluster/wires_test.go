//go:build linux

package cluster_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// namespace is a network namespace. It has no name: it ends with the test, and with the processes in it.
type namespace struct{ file *os.File }

// home is the namespace of the test.
var home = sync.OnceValues(func() (*os.File, error) { return os.Open("/proc/thread-self/ns/net") })

// newNamespace makes a namespace.
func newNamespace() (n *namespace, err error) {
	err = apart(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("a network namespace cannot be made, which needs root: %w", err)
		}
		file, err := os.Open("/proc/thread-self/ns/net")
		n = &namespace{file}
		return err
	})
	return n, err
}

// apart calls a function that changes the namespace of its thread, and brings the thread back. A thread that cannot be
// brought back ends.
func apart(f func() error) error {
	back, err := home()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	err = f()
	if lost := unix.Setns(int(back.Fd()), unix.CLONE_NEWNET); lost != nil {
		return errors.Join(err, lost)
	}
	runtime.UnlockOSThread()
	return err
}

// do calls a function in the namespace. Sockets that it opens, and processes that it starts, stay there.
func (n *namespace) do(f func() error) error {
	return apart(func() error {
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return f()
	})
}

// ip runs lines of commands of ip.
func (n *namespace) ip(lines ...string) error {
	return n.do(func() error {
		cmd := exec.Command("ip", "-batch", "-")
		cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("ip: %w: %s\n%s", err, out, strings.Join(lines, "\n"))
		}
		return nil
	})
}

// path returns a path of the namespace that other processes can open.
func (n *namespace) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd()) }

// wires are a network of namespaces: one for each host, and a router between them. The router drops what a link does not
// let pass, and says nothing about it. The MCP server is at the router.
type wires struct {
	t      *testing.T
	router *namespace
	hosts  []*namespace
}

// etcdHost is the index of the host of etcd. Those of the members are before it.
const etcdHost = size

// The ports of a member and of etcd.
const memberPort, etcdPort = "8090", "2379"

// host returns the namespace of a host, or nil without wires.
func (w *wires) host(host int) *namespace {
	if w == nil {
		return nil
	}
	return w.hosts[host]
}

// link is one direction between two hosts.
type link struct{ from, to int }

func (l link) String() string { return hostName(l.from) + "→" + hostName(l.to) }

// hostName returns the name of a host in the names of cases.
func hostName(host int) string {
	if host == etcdHost {
		return "etcd"
	}
	return slotName(host)
}

// routerIP is the address of the MCP server.
const routerIP = "10.26.0.1"

// hostIP returns the address of a host.
func hostIP(host int) string { return fmt.Sprintf("10.26.%d.2", host+1) }

// newWires makes the network of three members and etcd. It fails the test if the system does not allow it.
func newWires(t *testing.T) *wires {
	t.Helper()
	for _, program := range []string{"ip", "ss"} {
		_, err := exec.LookPath(program)
		require.NoError(t, err, "install iproute2")
	}
	w := &wires{t: t}
	add := func() *namespace {
		n, err := newNamespace()
		require.NoError(t, err)
		t.Cleanup(func() { n.file.Close() })
		return n
	}
	w.router = add()
	require.NoError(t, w.router.ip("link set lo up", "addr add "+routerIP+"/32 dev lo"))
	for host := range etcdHost + 1 {
		n := add()
		w.hosts = append(w.hosts, n)
		gate, port := fmt.Sprintf("10.26.%d.1", host+1), fmt.Sprint("host", host)
		require.NoError(t, w.router.ip(
			fmt.Sprintf("link add %s type veth peer name eth0 netns %s", port, n.path()), "addr add "+gate+"/24 dev "+port, "link set "+port+" up"))
		require.NoError(t, n.ip("link set lo up", "addr add "+hostIP(host)+"/24 dev eth0", "link set eth0 up", "route add default via "+gate))
	}
	require.NoError(t, w.router.do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600) }),
		"a namespace must be allowed to forward packets")
	return w
}

// listen listens at the router.
func (w *wires) listen() (l net.Listener, err error) {
	err = w.router.do(func() error {
		l, err = net.Listen("tcp", routerIP+":0")
		return err
	})
	return l, err
}

// rule is the number of the rule of a link in the router.
func (l link) rule() int { return 1000 + 10*l.from + l.to }

// cut drops all packets of links.
func (w *wires) cut(links ...link) {
	w.t.Helper()
	var lines []string
	for _, l := range links {
		lines = append(lines, fmt.Sprintf("rule add pref %d from %s to %s blackhole", l.rule(), hostIP(l.from), hostIP(l.to)))
	}
	require.NoError(w.t, w.router.ip(lines...))
}

// heal lets the packets of links pass again.
func (w *wires) heal(links ...link) {
	w.t.Helper()
	var lines []string
	for _, l := range links {
		lines = append(lines, fmt.Sprint("rule del pref ", l.rule()))
	}
	require.NoError(w.t, w.router.ip(lines...))
}

// swallowed is the number of the rules of swallowed connections.
const swallowed = 500

// swallow drops all packets of the connections that are established from one host to another. New ones work. It returns
// how many they are.
func (w *wires) swallow(l link) (connections int) {
	w.t.Helper()
	port := memberPort
	if l.to == etcdHost {
		port = etcdPort
	}
	var lines []string
	require.NoError(w.t, w.hosts[l.from].do(func() error {
		out, err := exec.Command("ss", "-Htn", "state", "established", "dst", hostIP(l.to)+":"+port).CombinedOutput()
		for line := range bytes.Lines(out) { // the receive queue, the send queue, the own address, the other address
			fields := strings.Fields(string(line))
			_, own, err := net.SplitHostPort(fields[2])
			if err != nil {
				return err
			}
			lines = append(lines,
				fmt.Sprintf("rule add pref %d from %s to %s ipproto tcp sport %s dport %s blackhole", swallowed, hostIP(l.from), hostIP(l.to), own, port),
				fmt.Sprintf("rule add pref %d from %s to %s ipproto tcp sport %s dport %s blackhole", swallowed, hostIP(l.to), hostIP(l.from), port, own))
		}
		return err
	}))
	if len(lines) > 0 {
		require.NoError(w.t, w.router.ip(lines...))
	}
	return len(lines) / 2
}

// release lets the packets of swallowed connections pass again.
func (w *wires) release(connections int) {
	w.t.Helper()
	lines := make([]string, 2*connections)
	for i := range lines {
		lines[i] = fmt.Sprint("rule del pref ", swallowed)
	}
	require.NoError(w.t, w.router.ip(lines...))
}

func TestWiresDropWhatIsCut(t *testing.T) {
	if *cuts == 0 {
		t.Skip("it needs root and iproute2: use make cuts")
	}
	w := newWires(t)
	ended := make(chan struct{})
	listener := w.echo(1, ended)
	dial := func() (c net.Conn, err error) {
		err = w.hosts[0].do(func() error {
			c, err = net.DialTimeout("tcp", listener.Addr().String(), 300*time.Millisecond)
			return err
		})
		return c, err
	}
	opened := func() net.Conn {
		c, err := dial()
		require.NoError(t, err)
		return c
	}
	answers := func(c net.Conn) bool {
		require.NoError(t, c.SetDeadline(time.Now().Add(300*time.Millisecond)))
		_, err := c.Write([]byte{1})
		require.NoError(t, err)
		_, err = c.Read(make([]byte, 1))
		return err == nil
	}
	for _, cut := range []link{{0, 1}, {1, 0}} {
		old := opened()
		others := []link{{0, 2}, {etcdHost, 1}}
		w.cut(others...)
		require.True(t, answers(old))
		w.cut(cut)
		require.False(t, answers(old))
		_, err := dial()
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		require.True(t, timeout.Timeout(), "packets are lost, and nobody says so")
		w.heal(append(others, cut)...)
		young := opened()
		require.True(t, answers(young))
		require.NoError(t, old.Close())
		require.NoError(t, young.Close())
	}
	old := opened()
	require.True(t, answers(old))
	require.Equal(t, 1, w.swallow(link{0, 1}))
	require.False(t, answers(old))
	young := opened()
	require.True(t, answers(young))
	w.release(1)
	require.NoError(t, old.Close())
	require.NoError(t, young.Close())
	require.NoError(t, listener.Close())
	<-ended
}

// echo sends back what comes to a host, until the listener is closed and all connections have ended.
func (w *wires) echo(host int, ended chan<- struct{}) (l net.Listener) {
	require.NoError(w.t, w.hosts[host].do(func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(hostIP(host), memberPort))
		return err
	}))
	go func() {
		defer close(ended)
		var all sync.WaitGroup
		defer all.Wait()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				io.Copy(c, c) // the connection ends
			})
		}
	}()
	return l
}
