//go:build linux

package network

import (
	"fmt"
	"maps"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// sockets are the connections of the named processes at some time.
type sockets struct {
	at     time.Time // before the look
	owners map[ports]string
}

// ports are the local and the remote port of a connection on the loopback interface.
type ports struct{ local, remote int }

// owner returns the name of the process at the other end of a connection. Connections that
// come at the same time share a look, which takes milliseconds.
func (n *Network) owner(c net.Conn) string {
	came := time.Now()
	n.looking.Lock()
	defer n.looking.Unlock()
	if n.seen.at.Before(came) {
		n.mu.Lock()
		names := maps.Clone(n.names)
		n.mu.Unlock()
		n.seen = look(names)
	}
	return n.seen.owners[ports{c.RemoteAddr().(*net.TCPAddr).Port, c.LocalAddr().(*net.TCPAddr).Port}]
}

// look returns the connections of processes. A process that has ended has none.
func look(names map[int]string) sockets {
	s := sockets{time.Now(), map[ports]string{}}
	owners := map[string]string{} // by inode
	for pid, name := range names {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		files, _ := os.ReadDir(dir)
		for _, f := range files {
			at, _ := os.Readlink(dir + "/" + f.Name())
			if inode, found := strings.CutPrefix(at, "socket:["); found {
				owners[strings.TrimSuffix(inode, "]")] = name
			}
		}
	}
	table, _ := os.ReadFile("/proc/net/tcp")
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line) // local and remote address in the second and the third, and the inode in the tenth
		if len(f) > 9 && owners[f[9]] != "" {
			s.owners[ports{port(f[1]), port(f[2])}] = owners[f[9]]
		}
	}
	return s
}

// port returns the port of an address such as "0100007F:1F90".
func port(addr string) int {
	_, hex, _ := strings.Cut(addr, ":")
	n, _ := strconv.ParseUint(hex, 16, 16) // as the system writes it
	return int(n)
}
