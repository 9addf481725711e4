//go:build containers

package containers

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/internal/stdioserver"
)

const image = "mcpactor-test"

// engine is podman or docker.
type engine struct {
	command []string // with its global options
	remove  []string // its subcommand that removes a container
}

// engines starts the engines with the image of the server in each. They end with the test.
func engines(t *testing.T) map[string]engine {
	dir, err := os.MkdirTemp("", "mcpactor") // short, as podman wants it
	require.NoError(t, err)
	t.Cleanup(func() {
		syscall.Unmount(filepath.Join(dir, "data"), syscall.MNT_DETACH) // by dockerd
		syscall.Unmount(filepath.Join(dir, "podman", "vfs"), syscall.MNT_DETACH)
		require.NoError(t, os.RemoveAll(dir))
	})
	archive := filepath.Join(dir, "image.tar")
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "server"), "./server")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	run(t, build)
	run(t, exec.Command("tar", "-C", dir, "-cf", archive, "server"))

	socket := "unix://" + filepath.Join(dir, "docker.sock")
	daemon := exec.Command("dockerd", "--data-root", filepath.Join(dir, "data"), "--exec-root", filepath.Join(dir, "exec"),
		"--host", socket, "--pidfile", filepath.Join(dir, "pid"), "--storage-driver", "vfs", "--iptables=false", "--bridge=none")
	require.NoError(t, daemon.Start())
	t.Cleanup(func() {
		require.NoError(t, daemon.Process.Signal(syscall.SIGTERM))
		daemon.Wait()
	})
	require.Eventually(t, func() bool {
		c, err := net.Dial("unix", strings.TrimPrefix(socket, "unix://"))
		if err == nil {
			c.Close()
		}
		return err == nil
	}, 30*time.Second, 50*time.Millisecond, "dockerd does not listen")

	all := map[string]engine{
		"podman": {
			[]string{"podman", "--storage-driver=vfs", "--root=" + filepath.Join(dir, "podman"), "--runroot=" + filepath.Join(dir, "run"), "--runtime=runc"},
			[]string{"rm", "--force", "--ignore", "--time=0"},
		},
		"docker": {[]string{"docker", "--host=" + socket}, []string{"rm", "--force"}},
	}
	for _, e := range all {
		run(t, e.cmd("import", archive, image))
	}
	return all
}

func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.Output()
	require.NoError(t, err, "%v", cmd.Args)
	return string(out)
}

func (e engine) cmd(args ...string) *exec.Cmd {
	return exec.Command(e.command[0], slices.Concat(e.command[1:], args)...)
}

// server returns a server with a trait in a container.
func (e engine) server(t *testing.T, trait stdioserver.Trait) mcpbridge.Server {
	records := filepath.Join(t.TempDir(), "records")
	process, err := stdioserver.New(t.TempDir(), trait).Server("s")
	require.NoError(t, err)
	args := slices.Concat(e.command[1:], []string{"run", "--rm", "-i", "--name={session}", "--network=none", "--ulimit=nofile=20000:20000", "--ulimit=nproc=1000:1000"})
	for name, value := range process.Env {
		if filepath.IsAbs(value) {
			value = "/records"
		}
		args = append(args, "--env="+name+"="+value)
	}
	return mcpbridge.Server{
		Name: "s", Command: e.command[0], Args: append(args, image, "/server"), InheritEnv: true,
		Cleanup: mcpbridge.Cleanup{Command: e.command[0], Args: slices.Concat(e.command[1:], e.remove, []string{mcpbridge.SessionMark}), Records: records},
	}
}

// containers returns the ids of all containers.
func (e engine) containers(t *testing.T) []string {
	t.Helper()
	return strings.Fields(run(t, e.cmd("ps", "--all", "--quiet")))
}

func (e engine) requireNone(t *testing.T) {
	t.Helper()
	var left []string
	require.Eventually(t, func() bool {
		left = e.containers(t)
		return len(left) == 0
	}, 40*time.Second, 100*time.Millisecond, "%v", &left)
}

func start(t *testing.T, server mcpbridge.Server) *supervisor.Supervisor {
	t.Helper()
	sup, err := supervisor.Start(actor.NewActorSystem(), supervisor.Config{Servers: []mcpbridge.Server{server}, CloseTimeout: 10 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { sup.Stop(context.Background()) })
	return sup
}

func ping(ctx context.Context, sup *supervisor.Supervisor) error {
	_, err := sup.Client().CallTool(ctx, "s", "a", &mcp.CallToolParams{Name: "pid"})
	return err
}

// ownerVar makes this test binary a program with a session in a container. Its value has the fields of the server, each in a line.
const ownerVar = "MCPACTOR_TEST_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(ownerVar) == "" {
		os.Exit(m.Run())
	}
	fields := strings.Split(os.Getenv(ownerVar), "\n")
	n, _ := strconv.Atoi(fields[1])
	server := mcpbridge.Server{
		Name: "s", Command: fields[2], Args: fields[3 : 3+n], InheritEnv: true,
		Cleanup: mcpbridge.Cleanup{Command: fields[2], Args: fields[3+n:], Records: fields[0]},
	}
	os.Unsetenv(ownerVar)
	sup, err := supervisor.Start(actor.NewActorSystem(), supervisor.Config{Servers: []mcpbridge.Server{server}})
	if err != nil {
		panic(err)
	}
	fmt.Println("starting")
	if err := ping(context.Background(), sup); err != nil {
		panic(err)
	}
	fmt.Println("open")
	select {}
}

// owner starts a program with a session in a container, and waits until it says so.
func owner(t *testing.T, server mcpbridge.Server, until string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	fields := slices.Concat([]string{server.Cleanup.Records, strconv.Itoa(len(server.Args)), server.Command}, server.Args, server.Cleanup.Args)
	cmd.Env = append(os.Environ(), ownerVar+"="+strings.Join(fields, "\n"))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	said := ""
	for b := make([]byte, 64); !strings.Contains(said, until); {
		n, err := out.Read(b)
		require.NoError(t, err, said)
		said += string(b[:n])
	}
	go io.Copy(io.Discard, out)
	return cmd
}

// Whatever ends a session, its container ends too.
func TestContainersEndWithTheirSessions(t *testing.T) {
	for name, e := range engines(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testEngine(t, e)
		})
	}
}

func testEngine(t *testing.T, e engine) {
	for habit, trait := range map[string]stdioserver.Trait{"ends with its input": "", "ignores its end and SIGTERM": stdioserver.Stubborn} {
		t.Run(habit, func(t *testing.T) {
			server := e.server(t, trait)
			open := func(t *testing.T) *supervisor.Supervisor {
				sup := start(t, server)
				require.NoError(t, ping(t.Context(), sup))
				require.Len(t, e.containers(t), 1)
				return sup
			}
			t.Run("the scope is closed", func(t *testing.T) {
				closed, err := open(t).Client().CloseScope(t.Context(), "a")
				require.NoError(t, err)
				require.Empty(t, closed.Left)
				require.Empty(t, e.containers(t), "closing waits for the cleanup")
			})
			t.Run("the supervisor stops", func(t *testing.T) {
				require.NoError(t, open(t).Stop(t.Context()))
				require.Empty(t, e.containers(t))
			})
			t.Run("the container is killed", func(t *testing.T) {
				sup := open(t)
				run(t, e.cmd("kill", e.containers(t)[0]))
				require.Eventually(t, func() bool { return ping(t.Context(), sup) == nil }, 20*time.Second, 100*time.Millisecond)
				require.Len(t, e.containers(t), 1, "the second one, alone")
				require.NoError(t, sup.Stop(t.Context()))
				require.Empty(t, e.containers(t))
			})
			t.Run("its command is killed", func(t *testing.T) {
				sup := open(t)
				require.NoError(t, syscall.Kill(childOf(t, os.Getpid(), e.command[0]), syscall.SIGKILL))
				require.Eventually(t, func() bool { return ping(t.Context(), sup) == nil }, 20*time.Second, 100*time.Millisecond)
				require.Len(t, e.containers(t), 1, "the second one, alone")
				require.NoError(t, sup.Stop(t.Context()))
				require.Empty(t, e.containers(t))
			})
			t.Run("its program is killed", func(t *testing.T) {
				program := owner(t, server, "open")
				require.Len(t, e.containers(t), 1)
				require.NoError(t, program.Process.Kill())
				program.Wait()
				start(t, server)
				e.requireNone(t)
			})
		})
	}
	t.Run("killed while it starts", func(t *testing.T) {
		server := e.server(t, stdioserver.Stubborn)
		for range 10 {
			program := owner(t, server, "starting")
			<-time.After(rand.N(time.Second))
			require.NoError(t, program.Process.Kill())
			program.Wait()
		}
		start(t, server)
		e.requireNone(t)
	})
	t.Run("it does not open", func(t *testing.T) {
		server := e.server(t, stdioserver.Mute)
		server.Limits.ConnectTimeout = 2 * time.Second
		sup := start(t, server)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		require.Error(t, ping(ctx, sup))
		require.NoError(t, sup.Stop(t.Context()))
		e.requireNone(t)
	})
}

// childOf returns a process that runs a program and has a parent.
func childOf(t *testing.T, parent int, program string) (pid int) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	require.NoError(t, err)
	for _, path := range threads {
		children, _ := os.ReadFile(path)
		for child := range strings.FieldsSeq(string(children)) {
			if comm, _ := os.ReadFile("/proc/" + child + "/comm"); strings.TrimSpace(string(comm)) == program {
				pid, err = strconv.Atoi(child)
				require.NoError(t, err)
			}
		}
	}
	require.NotZero(t, pid)
	return pid
}
