//go:build real

package real

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/freeport"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// nginxConf is a proxy with the defaults of nginx, and with nothing outside its directory.
const nginxConf = `
daemon off;
master_process off;
pid %[1]s/nginx.pid;
events {}
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	server {
		listen %[2]s;
		location / { proxy_pass %[3]s; %[4]s }
	}
}
`

// behindNginx puts nginx in front of a server. The directives are added to the defaults.
func (h *harness) behindNginx(server mcpbridge.Server, directives string) mcpbridge.Server {
	h.t.Helper()
	program, err := filepath.Abs("node_modules/nginx/usr/sbin/nginx")
	require.NoError(h.t, err)
	require.FileExists(h.t, program, "run tests/real/install")
	address, err := freeport.Addr("127.0.0.1")
	require.NoError(h.t, err)
	at, err := url.Parse(server.URL)
	require.NoError(h.t, err)
	conf := filepath.Join(h.dir, "nginx.conf")
	require.NoError(h.t, os.WriteFile(conf, fmt.Appendf(nil, nginxConf, h.dir, address, "http://"+at.Host, directives), 0o600))
	front := &remote{h: h, program: program, address: address, output: conf + ".output", args: []string{"-p", h.dir, "-c", conf, "-e", "stderr"}}
	h.fronts = append(h.fronts, front)
	front.start()
	server.URL = "http://" + address + at.Path
	return server
}

// C12: behind nginx, which answers 502 while its server is away, calls work within 3 s of the
// return of a server that has forgotten its sessions. No call fails then.
func TestServerThatRestartsBehindNginxIsFoundAgain(t *testing.T) {
	for name, c := range map[string]struct {
		program    serverProgram
		at         serverTransport
		directives string
	}{
		"http":            {everything, everything.transports[1], ""},
		"http unbuffered": {everything, everything.transports[1], "proxy_buffering off; proxy_http_version 1.1;"},
		"sse":             {legacy, legacy.transports[2], "proxy_buffering off;"}, // with a buffer it never works
		"another":         {serverProgram{script: "../servers/framework.mjs"}, serverTransport{path: "/mcp"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.start(supervisor.Config{}, h.behindNginx(h.serve("s", c.program, c.at), c.directives))
			h.restartBehindFront(false)
			h.restartBehindFront(name != "another") // which has no tool that takes long
		})
	}
}

// restartBehindFront restarts the servers, while calls are made that may not be run again. One that may is
// running before, if running is true.
func (h *harness) restartBehindFront(running bool) {
	h.t.Helper()
	h.echoes(5)
	var long *sentCommand
	if running {
		long = h.send(call("a", slow, arguments{"duration": 1, "steps": 2}))
		<-time.After(500 * time.Millisecond)
	}
	h.killServers()
	var during []*sentCommand
	for range 10 {
		during = append(during, h.send(call("a", echo, hello, replay(messages.ReplayNever))))
		<-time.After(250 * time.Millisecond)
	}
	h.restartServers()
	back := time.Now()
	h.echoes(5)
	require.Less(h.t, time.Since(back), 3*time.Second)
	failed := 0
	for _, p := range during {
		if f, is := p.reply().(*messages.Failure); is {
			failed++
			// ReplayNever also fails a call that could not be sent because the connection was just ending.
			require.True(h.t, f.MayHaveRun || f.Code == messages.CodeUnavailable, "%v", f)
			require.NotEqual(h.t, messages.CodeInvalid, f.Code, "%v", f)
			continue
		}
		require.Contains(h.t, text(h.t, p.returns()), "Echo: hello")
	}
	require.LessOrEqual(h.t, failed, 1, "the others wait")
	if long != nil {
		long.returns()
	}
}

// echoes makes calls that may not be run again, and checks that each has a result.
func (h *harness) echoes(n int) {
	h.t.Helper()
	for _, p := range h.calls(n) {
		require.Contains(h.t, text(h.t, p.returns()), "Echo: hello")
	}
}

func (h *harness) calls(n int) (all []*sentCommand) {
	for range n {
		all = append(all, h.send(call("a", echo, hello, replay(messages.ReplayNever))))
	}
	return all
}

// Behind nginx with its defaults, the event stream of HTTP+SSE brings nothing. The failure says
// so.
func TestEventStreamThatNginxWithholdsIsNamed(t *testing.T) {
	h := newHarness(t)
	h.start(supervisor.Config{ConnectTimeout: 3 * time.Second, CallTimeout: 10 * time.Second}, h.behindNginx(h.serve("s", legacy, legacy.transports[2]), ""))
	f := h.send(call("a", echo, hello)).fails(messages.CodeUnavailable)
	require.Contains(t, f.Detail, "proxy")
	require.False(t, f.MayHaveRun)
}
