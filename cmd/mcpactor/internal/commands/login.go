package commands

import (
	"cmp"
	"context"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/browser"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/internal/loopback"
	"github.com/mcpactor/mcpactor/internal/oauthresource"
	"github.com/mcpactor/mcpactor/login"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// loginTarget is a server whose login is meant.
type loginTarget struct {
	Server string       `arg:"" placeholder:"SERVER|URL" help:"URL of the server, or its name in the file."`
	Config string       `placeholder:"FILE" help:"File with the servers, such as .mcp.json."`
	Inputs inputs.Flags `embed:""`
}

// find returns the server. In a file, others do not matter.
func (t *loginTarget) find(p *cli.Program) (srv mcpbridge.Server, said config.OAuth, err error) {
	if t.Config == "" {
		u, err := url.Parse(t.Server)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return srv, said, cli.Usagef("%q is no URL: give that of the server, or --config FILE", t.Server)
		}
		return mcpbridge.Server{Name: "server", URL: t.Server}, said, nil
	}
	file, err := inputs.NewLoader(t.Inputs, p).First(t.Config)
	if err != nil {
		return srv, said, err
	}
	srv, err = serverIn(file, t.Server)
	said = file.OAuth[srv.Name]
	switch {
	case err != nil:
		return srv, said, err
	case srv.URL == "" || srv.PerKey != nil:
		return srv, said, cli.Usagef("%s: only a server at a URL without ${scope} has a login", t.Server)
	case browser.HasCredentials(&srv):
		return srv, said, cli.Usagef("%s: has credentials in the file: remove them first", t.Server)
	case srv.Auth != nil && !browser.Attached(&srv):
		return srv, said, cli.Usagef("%s: the file says how it gets tokens without a person: see its oauth", t.Server)
	case said.Off:
		return srv, said, cli.Usagef("%s: the file says that it has no login: change its oauth", t.Server)
	}
	return srv, said, nil
}

// Login is the command that logs in to a server.
type Login struct {
	loginTarget
	ClientID          string        `name:"client-id" placeholder:"ID" help:"Id of a client that you have registered."`
	ClientSecret      string        `env:"MCPACTOR_CLIENT_SECRET" placeholder:"SECRET" help:"Its secret."`
	ClientCredentials bool          `help:"Log in as that client, without a browser."`
	ClientKey         string        `placeholder:"FILE" help:"Its private key for that: PEM or JWK."`
	Issuer            string        `placeholder:"URL" help:"Authorization server at which it is registered, for --client-credentials."`
	ClientDocument    string        `placeholder:"URL" help:"Client ID metadata document in place of ours."`
	Redirect          string        `placeholder:"URL" help:"Where the browser comes back to, on this machine."`
	Scope             []string      `placeholder:"SCOPE" help:"Permission (OAuth scope) to ask for as well."`
	Timeout           time.Duration `default:"5m" help:"How long to wait for the login."`
	LogLevel          string        `default:"error" enum:"debug,info,warn,error" help:"Log to stderr: debug, info, warn or error."`
}

// Help says what the login is for.
func (*Login) Help() string {
	return "All commands use the login, and refresh it."
}

// Run opens a session, for which a person has to log in in the browser.
func (cmd *Login) Run(p *cli.Program) error {
	srv, said, err := cmd.find(p)
	if err != nil {
		return err
	}
	if err := cmd.complete(said); err != nil {
		return err
	}
	one, err := cmd.handler(p, srv.URL, said.Scopes)
	if err != nil {
		return err
	}
	srv.Auth = mcpbridge.OAuth(one)
	cfg := supervisor.Config{Servers: []mcpbridge.Server{srv}, FailFast: true, ConnectTimeout: cmd.Timeout + time.Minute}
	i, err := inputs.Start("", &config.File{Supervisor: cfg}, nil, p.Err, cmd.LogLevel)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := examine(ctx, i, toolset.Filter{Name: srv.Name}, cfg.ConnectTimeout)
	offered := true
	if d.err == nil && !one.Worked() { // some of its tools may need a login
		offered, d.err = one.Offer(ctx)
	}
	stopErr := i.Stop(closeLimit)
	switch {
	case d.err != nil && one.Worked():
		p.Errorf("logged in at %s, but it fails: %s", cmd.Server, causeOf(srv, d.err, cmd.Timeout))
		return cli.ErrFailed
	case d.err != nil:
		p.Errorf("%s: %s", cmd.Server, causeOf(srv, d.err, cmd.Timeout))
		return cli.ErrFailed
	case !offered:
		p.Errorf("%s has no login", cmd.Server)
		return cli.ErrFailed
	}
	p.Errorf("logged in at %s: %s", cmd.Server, number(len(d.tools), "tool"))
	return stopErr
}

// complete takes what the command line leaves open from the file, and returns an error for flags that do not go together.
func (cmd *Login) complete(said config.OAuth) error {
	if cmd.Redirect != "" && !loopback.IsPort(cmd.Redirect) {
		return cli.Usagef("--redirect: %q is not of this form: http://127.0.0.1:PORT/PATH", cmd.Redirect)
	}
	if cmd.ClientID == "" || cmd.ClientID == said.ClientID {
		cmd.ClientID, cmd.ClientSecret = said.ClientID, cmp.Or(cmd.ClientSecret, said.ClientSecret)
	}
	if cmd.ClientDocument != "" {
		if err := browser.CheckDocumentURL(cmd.ClientDocument); err != nil {
			return cli.Usagef("--client-document: %q %w", cmd.ClientDocument, err)
		}
	}
	switch {
	case cmd.ClientDocument != "" && cmd.ClientID != "":
		return cli.Usagef("--client-document: has no effect with the client %q that you have registered", cmd.ClientID)
	case cmd.ClientKey != "" && !cmd.ClientCredentials:
		return cli.Usagef("--client-key: is for --client-credentials")
	case cmd.Issuer != "" && !cmd.ClientCredentials:
		return cli.Usagef("--issuer: is for --client-credentials")
	case !cmd.ClientCredentials:
		cmd.Redirect = cmp.Or(cmd.Redirect, said.Redirect)
		return nil
	case cmd.Redirect != "":
		return cli.Usagef("--redirect: no browser comes back with --client-credentials")
	case cmd.ClientID == "":
		return cli.Usagef("--client-credentials: the client needs --client-id")
	case (cmd.ClientKey == "") == (cmd.ClientSecret == ""):
		return cli.Usagef("--client-credentials: the client needs either a secret in MCPACTOR_CLIENT_SECRET or --client-key")
	}
	if cmd.Issuer != "" {
		if err := oauthresource.CheckURL(cmd.Issuer); err != nil {
			return cli.Usagef("--issuer: %w", err)
		}
	}
	return nil
}

// handler returns what logs in: a person in the browser, or the client itself. Only are the scopes to ask for in place of others.
func (cmd *Login) handler(p *cli.Program, url string, only []string) (logsIn, error) {
	if cmd.ClientCredentials {
		key := cmd.ClientKey
		if key != "" {
			var err error
			if key, err = filepath.Abs(key); err != nil {
				return nil, err
			}
			if _, err := os.Stat(key); err != nil {
				return nil, cli.Usagef("--client-key: %w", err)
			}
		}
		return browser.NewMachine(url, login.Client{ID: cmd.ClientID, Secret: cmd.ClientSecret, KeyFile: key, Issuer: cmd.Issuer}, slices.Concat(only, cmd.Scope))
	}
	return browser.New(url, browser.Options{
		Asking: browser.Waiting, Err: p.Err, Timeout: cmd.Timeout, Remedy: "run the command again, or ask those who run the server",
		ClientID: cmd.ClientID, ClientSecret: cmd.ClientSecret, Document: cmd.ClientDocument, Redirect: cmd.Redirect, Only: only, Scopes: cmd.Scope,
	})
}

// logsIn is a [browser.Login] or a [browser.Machine].
type logsIn interface {
	auth.OAuthHandler
	Worked() bool
	Offer(ctx context.Context) (offered bool, err error)
}

// Logout is the command that forgets a login.
type Logout struct{ loginTarget }

// Help says what the command does not do.
func (*Logout) Help() string {
	return "This deletes the tokens on this machine. The authorization server is not told: revoke them there if you have to. Until its token expires, a running process may still use it."
}

// Run forgets the login.
func (cmd *Logout) Run(p *cli.Program) error {
	srv, _, err := cmd.find(p)
	if err != nil {
		return err
	}
	found, err := browser.Forget(srv.URL)
	if err == nil && !found {
		p.Errorf("%s: nobody has logged in", cmd.Server)
		return cli.ErrFailed
	}
	return err
}
