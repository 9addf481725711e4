//go:build linux

package cluster_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// etcd is a server of etcd.
type etcd struct {
	t        *testing.T
	dir      string
	client   string // the address that it listens on
	peer     string
	endpoint string // the address for the members
	in       *namespace
	process  *process
	starts   int
}

func startEtcd(t *testing.T, dir string, w *wires) *etcd {
	t.Helper()
	e := &etcd{t: t, dir: dir, in: w.host(etcdHost)}
	if w == nil {
		e.client, e.peer = freeAddr(t), freeAddr(t)
	} else {
		e.client, e.peer = net.JoinHostPort(hostIP(etcdHost), etcdPort), net.JoinHostPort(hostIP(etcdHost), "2380")
	}
	e.endpoint = e.client
	e.start()
	return e
}

// start starts the server, with its data.
func (e *etcd) start() {
	e.t.Helper()
	e.starts++
	ready := make(chan struct{})
	e.process = startProcess(e.t, e.in, e.dir, fmt.Sprint("etcd", e.starts), func(out io.Reader) {
		if lines := bufio.NewScanner(out); lines.Scan() {
			close(ready)
		}
		io.Copy(io.Discard, out) // it prints nothing else
	}, program("etcd"), "-dir", filepath.Join(e.dir, "etcd"), "-client", e.client, "-peer", e.peer)
	select {
	case <-ready:
	case <-time.After(patience):
		require.Fail(e.t, "etcd is not ready", e.process.tail())
	}
}
