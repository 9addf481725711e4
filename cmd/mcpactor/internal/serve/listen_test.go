package serve

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/internal/freeport"
)

// programVar makes the test binary the program.
const programVar = "MCPACTOR_SERVE_TEST_PROGRAM"

func runProgram() {
	var program struct {
		Serve Serve `cmd:""`
	}
	p := &cli.Program{Name: "mcpactor", In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	os.Exit(p.Run(&program, os.Args[1:]))
}

// listening starts the program in a process of its own, and waits until it listens. end kills it.
func listening(t *testing.T, address string, args ...string) (end func() (said string)) {
	return listeningAt(t, address, address, args...)
}

// listeningAt is listening for a program that is reached at another address than it is told.
func listeningAt(t *testing.T, listen, address string, args ...string) (end func() (said string)) {
	self, err := os.Executable()
	require.NoError(t, err)
	var said bytes.Buffer
	cmd := exec.Command(self, append([]string{"serve", "--listen", listen}, args...)...)
	cmd.Env = append(os.Environ(), programVar+"=1", "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait()
	}()
	end = func() string {
		cmd.Process.Kill()
		<-ended
		return said.String()
	}
	for range 1000 {
		resp, err := http.Get("http://" + address + "/livez")
		if err == nil {
			resp.Body.Close()
			return end
		}
		select {
		case <-ended:
			require.Fail(t, "it has ended", said.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	end()
	require.Fail(t, "it does not listen")
	return nil
}

// Killing the program ends nobody: a client goes on with the next process, whose servers it then has. Only the user can read what
// is kept.
func TestClientsGoOnAfterTheProgramIsKilled(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) { goesOnAfterTheProgramIsKilled(t, revision) })
	}
}

func goesOnAfterTheProgramIsKilled(t *testing.T, revision string) {
	self, err := os.Executable()
	require.NoError(t, err)
	cache := filepath.Join(t.TempDir(), "cache")
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("LocalAppData", cache)
	t.Setenv("HOME", cache)
	address, err := freeport.Addr("127.0.0.1")
	require.NoError(t, err)
	config := filepath.Join(t.TempDir(), "mcp.json")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `{"mcpServers": {"s": {"command": %q, "env": {%q: %q}}}, "supervisor": {"store": "unused.db"}}`, self, recordVar, filepath.Join(t.TempDir(), "called")), 0o600))
	end := listening(t, address, "--config", config)
	defer func() {
		if said := end(); t.Failed() {
			t.Log(said)
		}
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: "http://" + address + "/mcp", MaxRetries: 20}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	require.NoError(t, err)
	require.Equal(t, revision, session.InitializeResult().ProtocolVersion)
	defer session.Close()
	call := func() string {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "s__write"})
		require.NoError(t, err)
		require.Len(t, result.Content, 1)
		return result.Content[0].(*mcp.TextContent).Text
	}
	require.Equal(t, "write", call())
	require.Contains(t, end(), "its store is not used")
	end = listening(t, address, "--config", config)
	if again := call(); revision > "2025-11-25" {
		require.Equal(t, "write", again, "the server speaks this protocol as well, and keeps nothing for a session")
	} else {
		require.True(t, strings.HasPrefix(again, "write\n\nNote: server \"s\" has a new session."))
	}
	require.Equal(t, "write", call())

	// Another process at the same address does not take the store away.
	var said bytes.Buffer
	var program struct {
		Serve Serve `cmd:""`
	}
	p := &cli.Program{Name: "mcpactor", In: &said, Out: &said, Err: &said}
	require.NotEqual(t, cli.ExitOK, p.Run(&program, []string{"serve", "--listen", address, "--", self}))
	require.Contains(t, said.String(), "another mcpactor serve listens at "+address)

	require.NoError(t, filepath.WalkDir(filepath.Join(cache, "mcpactor"), func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		require.True(t, runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0, path)
		return nil
	}))
	end()
	end = listening(t, address, "--config", config, "--no-cache")
	if revision > "2025-11-25" { // there is no session that the program could have forgotten
		require.Equal(t, "write", call(), "nothing is kept without a store")
		return
	}
	_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "s__write"})
	require.Error(t, err, "nothing is kept without a store")
}

// Ten clients of six servers that are shared need six processes.
func TestSharedServersHaveOneProcess(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	address, err := freeport.Addr("127.0.0.1")
	require.NoError(t, err)
	starts, entries := filepath.Join(t.TempDir(), "starts"), []string{}
	for i := range 6 {
		entries = append(entries, fmt.Sprintf(`"s%d": {"command": %q, "env": {%q: %q, %q: %q}}`, i, self, recordVar, filepath.Join(t.TempDir(), "called"), startsVar, starts))
	}
	config := filepath.Join(t.TempDir(), "mcp.json")
	require.NoError(t, os.WriteFile(config, []byte(`{"mcpServers": {`+strings.Join(entries, ", ")+`}}`), 0o600))
	defer listening(t, address, "--no-cache", "--share", "all", "--config", config)()
	var clients errgroup.Group
	for range 10 {
		clients.Go(func() error {
			client := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: "http://" + address + "/mcp"}, nil)
			if err != nil {
				return err
			}
			defer session.Close()
			for i := range 6 {
				if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: fmt.Sprintf("s%d__write", i)}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, clients.Wait())
	pids, err := os.ReadFile(starts)
	require.NoError(t, err)
	require.Len(t, strings.Fields(string(pids)), 6)
}

// Other machines are served only if they show who they are. Each mistake has words that say what to write.
func TestFlagsOfListenAreChecked(t *testing.T) {
	token := []string{"--token", "hush"}
	for _, c := range []struct {
		flags []string
		err   string // nothing if they are fine
	}{
		{[]string{"--listen", "127.0.0.1:8090"}, ""},
		{[]string{"--listen", "[::1]:8090"}, ""},
		{[]string{"--listen", "localhost:8090"}, ""},
		{append(token, "--listen", "0.0.0.0:8090"), ""},
		{append(token, "--listen", ":8090"), ""},
		{append(token, "--listen", "box.example:8090"), ""},
		{[]string{"--listen", "0.0.0.0:8090", "--tls-cert", "c", "--tls-key", "k", "--tls-client-ca", "a"}, ""},
		{[]string{"--listen", "localhost:1", "--allow-host", "mcp.example.com", "--allow-origin", "https://a.example,vscode-webview://b", "--allow-origin", "http://c:8080"}, ""},
		{[]string{"--listen", "localhost:1", "--client-header", "X-Client_1"}, ""},
		{[]string{"--listen", "localhost:1", "--client-header", "X Client"}, `--client-header: "X Client" is no name of a header`},
		{[]string{"--client-header", "X-Client"}, "are for --listen"},
		{token, ""}, // which may be in the environment of all programs

		{[]string{"--listen", "18091"}, `"18091" has no host: write 127.0.0.1:18091`},
		{[]string{"--listen", "localhost"}, `"localhost" has no port: write localhost:8090`},
		{[]string{"--listen", "localhost:99999"}, "the port must be a number"},
		{[]string{"--listen", "::1"}, "write an IPv6 address in brackets"},
		{[]string{"--listen", "0.0.0.0:8090"}, "other machines reach 0.0.0.0:8090: set MCPACTOR_SERVE_TOKEN"},
		{[]string{"--listen", ":8090"}, "other machines reach :8090: set MCPACTOR_SERVE_TOKEN"},
		{[]string{"--listen", "[::]:8090"}, "other machines reach [::]:8090"},
		{[]string{"--listen", "192.0.2.1:8090"}, "other machines reach 192.0.2.1:8090"},
		{[]string{"--listen", "box.example:8090"}, "other machines reach box.example:8090"},
		{[]string{"--listen", "0.0.0.0:8090", "--tls-cert", "c", "--tls-key", "k"}, "other machines reach 0.0.0.0:8090"}, // TLS hides, and tells nobody apart
		{[]string{"--listen", "0.0.0.0:8090", "--token", "hush\n"}, "--token: has a space or a line break"},
		{[]string{"--listen", "0.0.0.0:8090", "--tls-client-ca", "a"}, "--tls-client-ca: needs --tls-cert"},
		{[]string{"--allow-host", "a.example"}, "are for --listen"},
		{[]string{"--tls-cert", "c", "--tls-key", "k"}, "are for --listen"},
		{[]string{"--listen", "localhost:1", "--allow-host", "a.example:80"}, `--allow-host: "a.example:80" is no host name`},
		{[]string{"--listen", "localhost:1", "--allow-host", "*"}, `--allow-host: "*" is no host name`},
		{[]string{"--listen", "localhost:1", "--allow-origin", "*"}, `--allow-origin: "*" is no origin`},
		{[]string{"--listen", "localhost:1", "--allow-origin", "https://*.example"}, "is no origin"},
		{[]string{"--listen", "localhost:1", "--allow-origin", "https://a.example/"}, `--allow-origin: "https://a.example/" is no origin: write it as browsers do`},
		{[]string{"--listen", "localhost:1", "--allow-origin", "a.example"}, "is no origin"},
	} {
		_, err := parsed(t, append(c.flags, "--", "some-server")...)
		if c.err == "" {
			require.NoError(t, err, "%v", c.flags)
			continue
		}
		require.ErrorContains(t, err, c.err, "%v", c.flags)
	}
}

func TestWarningsOfListen(t *testing.T) {
	long := strings.Repeat("a7", 16)
	for _, c := range []struct {
		flags       listenFlags
		inContainer bool
		want        []string
	}{
		{listenFlags{Listen: "127.0.0.1:1", Token: "hush"}, false, nil},
		{listenFlags{Listen: ":1", Token: long}, false, []string{"not encrypted"}},
		{listenFlags{Listen: ":1", Token: long}, true, nil},
		{listenFlags{Listen: ":1", Token: "hush", TLSCert: "c"}, false, []string{"short enough to be guessed"}},
		{listenFlags{Listen: ":1", Token: "hush"}, false, []string{"not encrypted", "short enough"}},
		{listenFlags{Listen: ":1", TLSCert: "c", TLSClientCA: "a"}, false, nil},
	} {
		said := c.flags.warnings(c.inContainer)
		require.Len(t, said, len(c.want))
		for i, want := range c.want {
			require.Contains(t, said[i], want)
			require.NotContains(t, said[i], "hush")
		}
	}
}

// withHeaders sends requests with headers.
type withHeaders struct {
	headers map[string]string
	next    http.RoundTripper
}

func (h *withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h.headers {
		r.Header.Set(name, value)
	}
	r.Host = h.headers["Host"]
	return h.next.RoundTrip(r)
}

// At all addresses of the machine, over TLS: a client has the token, or a certificate. Who has neither learns nothing, by any name.
func TestClientsOfOtherMachinesHaveATokenOrACertificate(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	a, folder := newAuthority(t), t.TempDir()
	cert, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	a.issue("mcpactor", cert, key)
	own, ownKey := filepath.Join(folder, "client.pem"), filepath.Join(folder, "client.key")
	a.issue("client", own, ownKey)
	shown, err := tls.LoadX509KeyPair(own, ownKey)
	require.NoError(t, err)
	address, err := freeport.Addr("127.0.0.1")
	require.NoError(t, err)
	_, port, _ := net.SplitHostPort(address)
	t.Setenv("MCPACTOR_SERVE_TOKEN", "hush")
	file := filepath.Join(folder, "mcp.json")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `{"mcpServers": {"s": {"command": %q, "env": {%q: %q}}}}`, self, recordVar, filepath.Join(folder, "called")), 0o600))
	end := listeningAt(t, "0.0.0.0:"+port, address, "--no-cache", "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", a.path,
		"--allow-host", "mcp.example.com", "--allow-origin", "https://app.example.com", "--config", file)
	defer func() {
		if said := end(); t.Failed() {
			t.Log(said)
		} else {
			require.NotContains(t, said, "not encrypted")
			require.Contains(t, said, "clients connect to https://localhost:"+port+"/mcp")
		}
	}()
	client := func(headers map[string]string, certificates ...tls.Certificate) *http.Client {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.pool(), Certificates: certificates}, ForceAttemptHTTP2: true}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: &withHeaders{headers, transport}}
	}
	get := func(path string, headers map[string]string, certificates ...tls.Certificate) (status int, body string, header http.Header) {
		resp, err := client(headers, certificates...).Get("https://" + address + path)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(text), resp.Header
	}
	call := func(client *http.Client) {
		transport := &mcp.StreamableClientTransport{Endpoint: "https://" + address + "/mcp", HTTPClient: client}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil).Connect(t.Context(), transport, nil)
		require.NoError(t, err)
		defer session.Close()
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "s__read"})
		require.NoError(t, err)
		require.False(t, result.IsError)
	}
	bearer := map[string]string{"Authorization": "Bearer hush"}
	call(client(bearer))
	call(client(nil, shown))
	call(client(map[string]string{"Authorization": "Bearer hush", "Host": "mcp.example.com:443", "Origin": "https://app.example.com"}))

	for _, path := range []string{"/mcp", "/debug/mcp/", "/", "/other"} {
		status, body, _ := get(path, nil)
		require.Equal(t, http.StatusUnauthorized, status, path)
		require.Equal(t, "the token is missing or wrong: send the header Authorization: Bearer TOKEN\n", body)
	}
	for _, path := range cli.ProbePaths {
		status, body, _ := get(path, map[string]string{"Host": "10.1.2.3.pod.example"})
		require.Equal(t, http.StatusOK, status, path)
		require.Empty(t, body)
	}
	status, body, _ := get("/debug/mcp/", map[string]string{"Authorization": "Bearer hush", "Host": "mcp.example.com"})
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "MCP")
	status, _, _ = get("/mcp", map[string]string{"Authorization": "Bearer hush", "Host": "evil.example"})
	require.Equal(t, http.StatusForbidden, status)
	status, _, header := get("/mcp", map[string]string{"Origin": "https://app.example.com"})
	require.Equal(t, http.StatusUnauthorized, status)
	require.Equal(t, "https://app.example.com", header.Get("Access-Control-Allow-Origin"), "its page may see why")

	stranger := newAuthority(t)
	stranger.issue("stranger", own, ownKey)
	theirs, err := tls.LoadX509KeyPair(own, ownKey)
	require.NoError(t, err)
	_, err = client(nil, theirs).Get("https://" + address + "/mcp")
	require.Error(t, err)
}

// A container may have no folder that can be written: all works but what needs one, and this is said.
func TestNothingIsKeptWithoutAFolderThatCanBeWritten(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(folder, "read-only"), 0o500))
	for name, home := range map[string]string{"none": "", "a file": file, "read-only": filepath.Join(folder, "read-only")} {
		if name == "read-only" && (os.Geteuid() == 0 || runtime.GOOS == "windows") {
			continue // root may write everywhere
		}
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"HOME", "XDG_CACHE_HOME", "LocalAppData"} {
				t.Setenv(variable, home)
			}
			config := filepath.Join(t.TempDir(), "mcp.json")
			require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `{"mcpServers": {"s": {"command": %q, "env": {%q: %q}}}}`, self, recordVar, filepath.Join(t.TempDir(), "called")), 0o600))
			address, err := freeport.Addr("127.0.0.1")
			require.NoError(t, err)
			end := listening(t, address, "--config", config)
			session, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: "http://" + address + "/mcp"}, nil)
			if err == nil {
				defer session.Close()
				_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "s__read"})
			}
			said := end()
			require.NoError(t, err, said)
			require.Contains(t, said, "nothing is kept between runs: ")
			require.Contains(t, said, "or use --no-cache")
			require.NotContains(t, said, "store failed")
		})
	}
}

// piped runs the program as a client over stdio does, and returns what it writes.
func piped(t *testing.T, messages ...string) (stdout, stderr string) {
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	config := filepath.Join(t.TempDir(), "mcp.json")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `{"mcpServers": {"s": {"command": %q, "env": {%q: %q}}}}`, self, recordVar, filepath.Join(t.TempDir(), "called")), 0o600))
	cmd := exec.CommandContext(ctx, self, "serve", "--no-cache", "--config", config)
	cmd.Env = append(os.Environ(), programVar+"=1", "GORACE=atexit_sleep_ms=0")
	var out, log bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(strings.Join(messages, "\n")), &out, &log
	require.NoError(t, cmd.Run(), log.String())
	for line := range strings.Lines(out.String()) {
		require.True(t, json.Valid([]byte(line)), line)
	}
	return out.String(), log.String()
}

// Traces and metrics go to the collector that the environment names. One that is down changes nothing for the client.
func TestTelemetryGoesToTheCollectorOfTheEnvironment(t *testing.T) {
	call := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"s__read","_meta":{"traceparent":"00-30313233343536373839616263646566-3031323334353637-01"}}}`,
	}
	var mu sync.Mutex
	got := map[string]string{}
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			got[r.URL.Path] += string(body)
		}
	}))
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	stdout, stderr := piped(t, call...)
	require.Contains(t, stdout, `"id":2,"result"`)
	require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	require.Contains(t, stderr, "tools are not pinned, and may change unseen: to pin them, run mcpactor pin --config")
	require.True(t, strings.Contains(got["/v1/traces"], "tools/call read"))
	require.True(t, strings.Contains(got["/v1/traces"], "0123456789abcdef"), "the span belongs to the trace of the client")
	require.True(t, strings.Contains(got["/v1/metrics"], "mcpactor.call.duration"))

	collector.Close()
	stdout, stderr = piped(t, call...)
	require.Contains(t, stdout, `"id":2,"result"`)
	require.Equal(t, 1, strings.Count(stderr, "telemetry was not sent"), stderr)

	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	stdout, stderr = piped(t, call...)
	require.Contains(t, stdout, `"id":2,"result"`)
	require.Contains(t, stderr, "no traces or metrics are sent: OTEL_EXPORTER_OTLP_PROTOCOL: grpc is not spoken: use http/protobuf")
}
