//go:build real

package real

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func TestLoginIsKeptForAllProcesses(t *testing.T) {
	o := newHosted(t, hosting{})
	_, stderr, status := o.call()
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "nobody has logged in; run: mcpactor login --config "+o.config+" hosted")

	stderr, page, status := o.login(nil)
	require.Zero(t, status, stderr)
	require.Contains(t, stderr, "logged in at "+o.url+": 1 tool\n")
	require.Equal(t, "You are logged in. You can close this window.\n", page)

	login := o.kept()
	files := o.logins()
	info, err := os.Stat(files[0])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())

	stdout, stderr, status := o.call("--log-level", "debug")
	require.Zero(t, status, stderr)
	require.Equal(t, account+"\n", stdout)
	for _, token := range []string{login.Token.Access, login.Token.Refresh} {
		require.NotEmpty(t, token)
		require.NotContains(t, stderr, token)
	}
	stdout, _, status = o.run("doctor", "--config", o.config)
	require.Zero(t, status)
	require.Regexp(t, `hosted +works +1 .* logged in`, stdout)
	_, stderr, status = o.run("tools", "--config", o.config)
	require.Zero(t, status, stderr)

	_, stderr, status = o.run("logout", "--config", o.config, "hosted")
	require.Zero(t, status, stderr)
	require.Empty(t, o.logins())
	_, stderr, status = o.call()
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "nobody has logged in")
	_, _, status = o.run("logout", o.url)
	require.Equal(t, 1, status)
}

func TestClientThatIsRegisteredIsUsed(t *testing.T) {
	o := newHosted(t, hosting{})
	stderr, _, status := o.login(nil, "--client-id", "given", "--redirect", o.redirect)
	require.Zero(t, status, stderr)
	require.Equal(t, "given", o.kept().Client.ClientID)
	stderr, _, status = o.login(nil) // again, as it was
	require.Zero(t, status, stderr)
	require.Equal(t, "given", o.kept().Client.ClientID)
}

// The client is in the file, as VS Code and others write it.
func TestClientInAFileIsUsed(t *testing.T) {
	o := newHosted(t, hosting{})
	require.NoError(t, os.WriteFile(o.config, fmt.Appendf(nil, `{"mcpServers": {"hosted": {"url": %q, "oauth": {"clientId": "given", "redirectUri": %q}}}}`, o.url, o.redirect), 0o600))
	stderr, _, status := o.login(nil, "--config", o.config)
	require.Zero(t, status, stderr)
	require.Equal(t, "given", o.kept().Client.ClientID)
	stdout, stderr, status := o.call()
	require.Zero(t, status, stderr)
	require.Equal(t, account+"\n", stdout)
}

// lines runs the batch runner, line by line.
type lines struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	log *strings.Builder
	n   int
}

func (o *hosted) exec() *lines {
	o.t.Helper()
	l := &lines{cmd: exec.Command(o.program, "exec", "--config", o.config, "--log-level", "debug"), log: &strings.Builder{}}
	l.cmd.Env, l.cmd.Stderr = o.env, l.log
	in, err := l.cmd.StdinPipe()
	require.NoError(o.t, err)
	out, err := l.cmd.StdoutPipe()
	require.NoError(o.t, err)
	require.NoError(o.t, l.cmd.Start())
	o.t.Cleanup(func() {
		l.cmd.Process.Kill()
		l.cmd.Wait() // again, unless the test has failed
	})
	l.in, l.out = in, bufio.NewReader(out)
	return l
}

func (l *lines) call() (string, error) {
	l.n++
	fmt.Fprintf(l.in, `{"id":%d,"server":"hosted","tool":"who"}`+"\n", l.n)
	return l.out.ReadString('\n')
}

func (l *lines) end() error {
	l.in.Close()
	return l.cmd.Wait()
}

// The authorization server says that tokens last for 3 s, so that each call needs a new one: oauth2 takes a token for expired
// 10 s before.
func TestTokensAreRefreshedInALongRun(t *testing.T) {
	for refused, seconds := range map[bool]int{false: 3, true: 3600} {
		t.Run(fmt.Sprintf("refused=%v", refused), func(t *testing.T) {
			o := newHosted(t, hosting{provider: provider{AccessSeconds: seconds}})
			stderr, _, status := o.login(nil)
			require.Zero(t, status, stderr)
			l := o.exec()
			used := map[string]bool{}
			for range 10 {
				answer, err := l.call()
				require.NoError(t, err)
				require.Contains(t, answer, `"`+account+`"`)
				token := o.kept().Token
				require.False(t, used[token.Refresh], "it is refreshed for each call")
				used[token.Refresh], used[token.Access] = true, true
				if refused {
					o.refused.Store(token.Access, true)
				}
			}
			o.revoke()
			answer, err := l.call()
			require.NoError(t, err)
			require.Contains(t, answer, `"code":"unauthorized"`)
			require.Contains(t, answer, "run: mcpactor login --config "+o.config+" hosted")
			require.Error(t, l.end())
			for token := range used {
				require.NotContains(t, l.log.String(), token)
			}

			stderr, _, status = o.login(nil)
			require.Zero(t, status, stderr)
			_, stderr, status = o.call()
			require.Zero(t, status, stderr)
		})
	}
}

// A refresh token that two processes use ends the login at this authorization server.
func TestProcessesDoNotDestroyEachOthersTokens(t *testing.T) {
	o := newHosted(t, hosting{provider: provider{AccessSeconds: 3}})
	stderr, _, status := o.login(nil)
	require.Zero(t, status, stderr)
	var all sync.WaitGroup
	failures := make(chan string, 100)
	for range 4 {
		all.Go(func() {
			l := o.exec()
			for range 10 {
				if answer, err := l.call(); err != nil || !strings.Contains(answer, `"`+account+`"`) {
					failures <- fmt.Sprint(answer, err)
				}
			}
			if err := l.end(); err != nil {
				failures <- err.Error()
			}
		})
	}
	all.Wait()
	close(failures)
	for failure := range failures {
		require.Fail(t, failure)
	}
	_, stderr, status = o.call()
	require.Zero(t, status, stderr)
}

func TestAnswersThatAreNotOfThisLoginAreRefused(t *testing.T) {
	o := newHosted(t, hosting{})
	change := func(u *url.URL, name, value string) {
		query := u.Query()
		query.Set(name, value)
		u.RawQuery = query.Encode()
	}
	var right string
	address, wait := o.startLogin()
	page := o.browse(address, func(u *url.URL) {
		right = u.String()
		change(u, "state", "another")
	})
	require.Contains(t, page, "no answer to the login")
	require.Contains(t, o.browse(right, nil), "You are logged in")
	stderr, status := wait()
	require.Zero(t, status, stderr)
	_, _, status = o.run("logout", o.url)
	require.Zero(t, status)

	stderr, page, status = o.login(func(u *url.URL) { change(u, "iss", "https://elsewhere.example") })
	require.Equal(t, 1, status)
	require.Contains(t, page, "has failed")
	require.Contains(t, stderr, "does not match expected issuer")
	require.Empty(t, o.logins())
}

func TestServeOpensTheBrowserOnce(t *testing.T) {
	o := newHosted(t, hosting{})
	ctx, cancel := context.WithDeadline(context.Background(), o.limit)
	defer cancel()
	changed := make(chan struct{}, 10)
	connect := func(args ...string) (*mcp.ClientSession, *strings.Builder) {
		cmd := exec.Command(o.program, append([]string{"serve"}, args...)...)
		log := &strings.Builder{}
		cmd.Env, cmd.Stderr = o.env, log
		client := mcp.NewClient(&mcp.Implementation{Name: "test"}, &mcp.ClientOptions{
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
		})
		session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
		require.NoError(t, err)
		return session, log
	}
	first, log := connect(o.url)
	second, _ := connect(o.url)
	address := o.opened()
	for _, session := range []*mcp.ClientSession{first, second} {
		_, err := session.ListTools(ctx, nil)
		require.ErrorContains(t, err, "log in in the browser that mcpactor has opened, or run: mcpactor login URL")
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "who"})
		require.NoError(t, err)
		require.True(t, result.IsError)
		require.Contains(t, result.Content[0].(*mcp.TextContent).Text, "mcpactor login URL")
	}
	require.Contains(t, o.browse(address, nil), "You are logged in")
	for _, session := range []*mcp.ClientSession{first, second} {
		select {
		case <-changed:
		case <-ctx.Done():
			require.Fail(t, "no client was told of the tools")
		}
		o.eventually("the tool works", func() bool {
			result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "who"})
			return err == nil && !result.IsError && result.Content[0].(*mcp.TextContent).Text == account
		})
	}
	require.NoFileExists(t, o.dir+"/opened", "one browser is enough")
	require.NoError(t, first.Close())
	require.NoError(t, second.Close())
	login := o.kept().Token
	require.NotContains(t, log.String(), login.Access)
	require.NotContains(t, log.String(), login.Refresh)

	third, _ := connect("--config", o.config)
	result, err := third.CallTool(ctx, &mcp.CallToolParams{Name: "hosted__who"})
	require.NoError(t, err)
	require.Equal(t, account, result.Content[0].(*mcp.TextContent).Text)
	require.NoError(t, third.Close())
}

func TestTokensAreNotOnTheDebugPage(t *testing.T) {
	o := newHosted(t, hosting{})
	stderr, _, status := o.login(nil)
	require.Zero(t, status, stderr)
	cmd := exec.Command(o.program, "serve", "--config", o.config, "--listen", "127.0.0.1:0")
	cmd.Env = o.env
	log, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait() // again, unless the test has failed
	})
	line, err := bufio.NewReader(log).ReadString('\n')
	require.NoError(t, err)
	addresses := regexp.MustCompile(`http://\S+`).FindAllString(line, -1)
	require.Len(t, addresses, 2, line)

	client := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: strings.TrimSuffix(addresses[0], ";")}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { session.Close() }) // again, unless the test has failed
	_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "hosted__who"})
	require.NoError(t, err)
	for _, path := range []string{"", "?format=json"} {
		resp, err := http.Get(addresses[1] + path)
		require.NoError(t, err)
		page, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, http.StatusOK, resp.StatusCode, path)
		require.Contains(t, string(page), "hosted")
		for _, token := range []string{o.kept().Token.Access, o.kept().Token.Refresh} {
			require.NotContains(t, string(page), token)
		}
	}
	require.NoError(t, session.Close())
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.NoError(t, cmd.Wait())
}
