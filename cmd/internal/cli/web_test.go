package cli

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/supervisor"
)

// get returns the status and the body of a page.
func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

func TestWebServesThePageAndTheProbes(t *testing.T) {
	system := actor.NewActorSystem(supervisor.WithSystemLogger(zerolog.Nop()))
	sup, err := supervisor.Start(system, supervisor.Config{Servers: []supervisor.Server{
		{Name: "memory", InMemory: mcp.NewServer(&mcp.Implementation{Name: "m", Version: "1"}, nil)},
	}})
	require.NoError(t, err)
	defer sup.Stop(t.Context())
	before := goleak.IgnoreCurrent()

	web, err := Serve("127.0.0.1:0", Site{Shown: sup, Supervisor: sup})
	require.NoError(t, err)
	require.False(t, web.Public)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/debug/mcp/$`, web.URL)
	root := strings.TrimSuffix(web.URL, PagePath)
	for path, want := range map[string]int{"/": 200, PagePath: 200, "/livez": 200, "/healthz": 200, "/readyz": 200, "/other": 404} {
		status, _ := get(t, root+path)
		require.Equal(t, want, status, path)
	}
	_, err = Serve(strings.TrimPrefix(root, "http://"), Site{Shown: sup, Supervisor: sup})
	var usage *UsageError
	require.ErrorAs(t, err, &usage, "the address is in use")
	require.ErrorContains(t, err, "--listen: ")
	live, err := http.Get(web.URL + "live") // which goes on until the server ends
	require.NoError(t, err)
	require.Equal(t, "text/event-stream", live.Header.Get("Content-Type"))
	web.Close()
	io.Copy(io.Discard, live.Body)
	live.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	_, err = net.Dial("tcp", strings.TrimPrefix(root, "http://"))
	require.Error(t, err)
	goleak.VerifyNone(t, before)
	(*Web)(nil).Close()
}

func TestWebThatOtherMachinesMayReachIsPublic(t *testing.T) {
	web, err := Serve(":0", Site{Actions: true})
	require.NoError(t, err)
	defer web.Close()
	require.True(t, web.Public)
	resp, err := http.Post(web.URL+"close-scope", "application/x-www-form-urlencoded", nil)
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusNotFound, resp.StatusCode, "it has no actions")
	http.DefaultClient.CloseIdleConnections()
	require.Regexp(t, `^http://localhost:\d+/debug/mcp/$`, web.URL)
}
