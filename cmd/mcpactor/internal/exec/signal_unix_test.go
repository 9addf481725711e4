//go:build unix

package exec

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
)

// execution is a run of exec in this process.
type execution struct {
	*testing.T
	in     io.WriteCloser
	out    *bufio.Reader
	log    chan string // lines
	status int
	ended  sync.WaitGroup
}

func execute(t *testing.T, args ...string) *execution {
	in, feed := io.Pipe()
	out, print := io.Pipe()
	log, warn := io.Pipe()
	c := &execution{T: t, in: feed, out: bufio.NewReader(out), log: make(chan string, 1000)}
	c.ended.Go(func() {
		defer print.Close()
		defer warn.Close()
		c.status = run(append(args, "--log-level", "info"), in, print, warn)
	})
	c.ended.Go(func() {
		defer close(c.log)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			c.log <- lines.Text()
		}
	})
	return c
}

// ask sends a request, and returns the response.
func (c *execution) ask(request string) (response map[string]any) {
	_, err := io.WriteString(c.in, request+"\n")
	require.NoError(c, err)
	line, err := c.out.ReadBytes('\n')
	require.NoError(c, err)
	require.NoError(c, json.Unmarshal(line, &response))
	return response
}

// hangUp sends SIGHUP.
func (c *execution) hangUp() { require.NoError(c, syscall.Kill(os.Getpid(), syscall.SIGHUP)) }

// logged waits for a line of the log with a text, and returns all lines up to it.
func (c *execution) logged(text string) (lines string) {
	for line := range c.log {
		lines += line + "\n"
		if strings.Contains(line, text) {
			return lines
		}
	}
	require.Fail(c, "the log ended without "+text, lines)
	return ""
}

// end closes the input, and waits until exec returns.
func (c *execution) end() (status int) {
	c.in.Close()
	c.ended.Wait()
	return c.status
}

func names(response map[string]any) (names []string) {
	for _, tool := range response["result"].(map[string]any)["tools"].([]any) {
		names = append(names, tool.(map[string]any)["name"].(string))
	}
	return names
}

func TestHangUpReloadsTheServers(t *testing.T) {
	one, two := servertest.Serve(t, servertest.NewTools("a", "b")), servertest.Serve(t, servertest.NewTools("c"))
	config := servertest.File(t, fmt.Sprintf(`{"mcpServers": {"one": {"url": %q}}}`, one))
	c := execute(t, "exec", "--config", config)
	list := `{"id":"1","op":"tools"}`
	require.Equal(t, []string{"one__a", "one__b"}, names(c.ask(list)))

	const wrong, reloaded, ignored = "nothing was reloaded", "configuration was reloaded", "supervisor object were ignored"
	for _, step := range []struct {
		config string
		log    []string
		want   []string
	}{
		{`{`, []string{wrong}, []string{"one__a", "one__b"}},
		{`{"mcpServers": {"one": {"url": "ftp://x"}}}`, []string{wrong}, []string{"one__a", "one__b"}},
		{fmt.Sprintf(`{"mcpServers": {"one": {"url": "ftp://x"}, "two": {"url": %q}}}`, two), []string{wrong}, []string{"one__a", "one__b"}},
		{
			fmt.Sprintf(`{"mcpServers": {"one": {"url": %q, "allow": ["b"]}, "two": {"url": %q}, "new": {"command": 7}}}`, one, two),
			[]string{"mcpServers.new.command", reloaded},
			[]string{"one__b", "two__c"},
		},
		{
			fmt.Sprintf(`{"mcpServers": {"one": {"url": %q, "disabled": true}, "two": {"url": %q}, "new": {"command": 7}}, "supervisor": {"roots": true}}`, one, two),
			[]string{ignored, reloaded},
			[]string{"two__c"},
		},
	} {
		require.NoError(t, os.WriteFile(config, []byte(step.config), 0o600))
		c.hangUp()
		var log string
		for _, want := range step.log {
			log += c.logged(want)
		}
		require.Equal(t, slices.Contains(step.log, ignored), strings.Contains(log, ignored), log)
		require.Equal(t, step.want, names(c.ask(list)))
	}
	require.Equal(t, "unknown_server", c.ask(`{"id":"2","server":"one","tool":"a"}`)["code"])
	require.Equal(t, "c", text(c.ask(`{"id":"3","name":"two__c"}`)))
	require.Equal(t, cli.ExitFailed, c.end(), "one call failed")
}

// A signal that arrives during a reload causes another reload.
func TestHangUpsDuringAReloadAreNotLost(t *testing.T) {
	one := servertest.Serve(t, servertest.NewTools("a"))
	config := servertest.File(t, fmt.Sprintf(`{"mcpServers": {"one": {"url": %q}}}`, one))
	path := config + ".fifo"
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0)) } // blocks until the pipe is opened for reading
	c := execute(t, "exec", "--config", path)
	write(fmt.Sprintf(`{"mcpServers": {"one": {"url": %q}}}`, one))
	require.Equal(t, "a", text(c.ask(`{"id":"1","server":"one","tool":"a"}`)))
	c.hangUp()
	fifo, err := os.OpenFile(path, os.O_WRONLY, 0) // returns when the reload opens the pipe
	require.NoError(t, err)
	c.hangUp()
	require.Equal(t, "a", text(c.ask(`{"id":"2","server":"one","tool":"a"}`)), "requests run during the reload")
	fifo.Close()
	c.logged("nothing was reloaded")
	write(fmt.Sprintf(`{"mcpServers": {"one": {"url": %q}, "two": {"command": "x"}}}`, one)) // for the next reload
	c.logged("configuration was reloaded servers=2")
	require.Equal(t, cli.ExitOK, c.end())
}

// A signal cancels the listing, and closes the sessions.
func TestInterruptEndsTheListing(t *testing.T) {
	asked := make(chan struct{}, 16)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer hanging.Close()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		config := servertest.File(t, fmt.Sprintf(`{"mcpServers": {"s": {"url": %q}}}`, hanging.URL))
		var out, log strings.Builder
		var status int
		var ended sync.WaitGroup
		ended.Go(func() { status = run([]string{"tools", "--config", config}, nil, &out, &log) })
		<-asked
		require.NoError(t, syscall.Kill(os.Getpid(), signal))
		ended.Wait()
		require.Equal(t, cli.ExitFailed, status)
		require.Empty(t, out.String())
		require.Contains(t, log.String(), "mcpactor: tools/list: cancelled")
	}
}

func TestPageIsServedWhileRequestsRun(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)
	c := execute(t, "exec", "--config", servertest.File(t, fmt.Sprintf(`{"mcpServers": {"desk": {"url": %q}}}`, servertest.Serve(t, server))), "--listen", "127.0.0.1:0")
	defer func() { // also when the test fails
		c.in.Close()
		go io.Copy(io.Discard, c.out)
		for range c.log {
		}
		c.ended.Wait()
	}()
	said := c.logged("the sessions are shown at ")
	url := strings.TrimSpace(said[strings.Index(said, "http://"):])
	require.NotContains(t, said, "other machines")
	require.Equal(t, true, c.ask(`{"id":1,"server":"desk","op":"open"}`)["ok"])

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, page := range []string{url, strings.TrimSuffix(url, cli.PagePath) + "/readyz"} {
		resp, err := client.Get(page)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, http.StatusOK, resp.StatusCode, page)
	}
	require.Equal(t, cli.ExitOK, c.end())
	_, err := client.Get(url)
	require.Error(t, err)
}
