package mcpserver

import (
	"bufio"
	"context"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// ends returns the ends of a pipe, and of a socket as Node.js gives it to a process. A read of the first of two waits for the second.
func ends(t *testing.T) map[string][2]*os.File {
	var pipe [2]int
	require.NoError(t, unix.Pipe2(pipe[:], unix.O_CLOEXEC))
	sockets, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	all := map[string][2]*os.File{}
	for name, fds := range map[string][2]int{"pipe": pipe, "socket": sockets} {
		in, out := os.NewFile(uintptr(fds[0]), "in"), os.NewFile(uintptr(fds[1]), "out")
		t.Cleanup(func() { in.Close(); out.Close() })
		all[name] = [2]*os.File{in, out}
	}
	return all
}

// isBlocking reports whether a read of a file waits in the kernel.
func isBlocking(t *testing.T, f *os.File) bool {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	require.NoError(t, err)
	return flags&unix.O_NONBLOCK == 0
}

func TestInputIsPolledWhileItIsServed(t *testing.T) {
	for name, end := range ends(t) {
		t.Run(name, func(t *testing.T) {
			in, far := end[0], end[1]
			answers, out := io.Pipe()
			ctx, stop := context.WithCancel(t.Context())
			served := make(chan struct{})
			go func() {
				defer close(served)
				ServeStdio(ctx, in, out, func(c *Client) Handler { return &orderly{Client: c} })
			}()
			_, err := io.WriteString(far, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
			require.NoError(t, err)
			line, err := bufio.NewReader(answers).ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`+"\n", line)
			require.False(t, isBlocking(t, in))
			stop()
			<-served
			require.True(t, isBlocking(t, in), "it belongs to other processes, too")
		})
	}
}

// What is written to an output that is polled would be lost while its reader is slow.
func TestInputThatIsAnOutputStaysAsItIs(t *testing.T) {
	in := ends(t)["socket"][0]
	from, done := polled(in, in)
	defer done()
	require.Same(t, in, from)
	require.True(t, isBlocking(t, in))
}
