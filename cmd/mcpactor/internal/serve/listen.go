package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"unicode"

	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/internal/loopback"
)

// endpointPath is where clients reach the endpoint.
const endpointPath = "/mcp"

// listenFlags say where clients are served over HTTP, and which ones.
type listenFlags struct {
	Listen       string   `placeholder:"HOST:PORT" help:"Serve HTTP at /mcp, sessions at /debug/mcp/. Further: --tls-*, --allow-host, --allow-origin, --client-header."`
	Token        string   `env:"MCPACTOR_SERVE_TOKEN" placeholder:"TOKEN" help:"Bearer token for --listen."`
	TLSCert      string   `name:"tls-cert" and:"tls" hidden:"" placeholder:"FILE" help:"Certificate for --listen, with those of its issuers."`
	TLSKey       string   `name:"tls-key" and:"tls" hidden:"" placeholder:"FILE" help:"Private key of the certificate."`
	TLSClientCA  string   `name:"tls-client-ca" hidden:"" placeholder:"FILE" help:"A client certificate of one of these issuers counts as the token."`
	AllowHost    []string `hidden:"" placeholder:"NAME" help:"Serve clients that reach --listen by this host name."`
	ClientHeader string   `hidden:"" placeholder:"NAME" help:"This header tells clients of protocol 2026-07-28 with the same token apart."`
	AllowOrigin  []string `hidden:"" placeholder:"ORIGIN" help:"Serve the pages of this origin, such as https://app.example.com."`
}

// check returns an error if clients cannot be served as the flags say, or if anybody could use the servers.
func (f *listenFlags) check() error {
	if f.Listen == "" {
		if f.TLSCert+f.TLSClientCA+f.ClientHeader != "" || len(f.AllowHost)+len(f.AllowOrigin) > 0 {
			return cli.Usagef("--tls-cert, --tls-client-ca, --allow-host, --allow-origin, --client-header: are for --listen: give it as well")
		}
		return nil
	}
	host, err := cli.ListenHost(f.Listen)
	switch {
	case err != nil:
		return err
	case !loopback.Is(host) && f.Token == "" && f.TLSClientCA == "":
		return cli.Usagef("--listen: other machines reach %s: set MCPACTOR_SERVE_TOKEN to a long random token that clients send, or use 127.0.0.1", f.Listen)
	case strings.ContainsFunc(f.Token, unicode.IsSpace):
		return cli.Usagef("--token: has a space or a line break, which no client can send: is it one of a file that was read whole?")
	case f.TLSClientCA != "" && f.TLSCert == "":
		return cli.Usagef("--tls-client-ca: needs --tls-cert and --tls-key")
	}
	for _, name := range f.AllowHost {
		if name == "" || strings.ContainsAny(name, ":/*") {
			return cli.Usagef("--allow-host: %q is no host name: write it without a port, as in mcp.example.com", name)
		}
	}
	for _, origin := range f.AllowOrigin {
		if u, err := url.Parse(origin); err != nil || u.Host == "" || origin != u.Scheme+"://"+u.Host || strings.Contains(origin, "*") {
			return cli.Usagef("--allow-origin: %q is no origin: write it as browsers do, as in https://app.example.com", origin)
		}
	}
	if f.ClientHeader != "" && !headerName.MatchString(f.ClientHeader) {
		return cli.Usagef("--client-header: %q is no name of a header: write it as in X-Client", f.ClientHeader)
	}
	return nil
}

// headerName matches the names of headers.
var headerName = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$")

// warnings returns what is dangerous about the flags.
func (f *listenFlags) warnings(inContainer bool) (all []string) {
	host, _ := cli.ListenHost(f.Listen)
	if loopback.Is(host) {
		return nil
	}
	if f.TLSCert == "" && !inContainer {
		all = append(all, "--listen: the token is not encrypted on its way: use --tls-cert and --tls-key, or a proxy that does TLS")
	}
	if f.Token != "" && len(f.Token) < longToken {
		all = append(all, "--token: it is short enough to be guessed: use a random one, such as that of openssl rand -hex 16")
	}
	return all
}

// longToken is how many characters a token has that nobody can guess.
const longToken = 20

// isInContainer reports whether this process is in a container, whose ports are published by somebody else.
func isInContainer() bool {
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} { // of docker and podman
		if _, err := os.Stat(mark); err == nil {
			return true
		}
	}
	return os.Getenv("KUBERNETES_SERVICE_HOST") != ""
}

// tls returns the configuration of the server, or nil for plain HTTP.
func (f *listenFlags) tls(log zerolog.Logger) (*tls.Config, error) {
	if f.TLSCert == "" {
		return nil, nil
	}
	own, err := newCertificate(f.TLSCert, f.TLSKey, log)
	if err != nil {
		return nil, cli.Usagef("--tls-cert: %w", err)
	}
	cfg := &tls.Config{GetCertificate: own.get}
	if f.TLSClientCA != "" {
		issuers, err := os.ReadFile(f.TLSClientCA)
		if err != nil {
			return nil, cli.Usagef("--tls-client-ca: %w", err)
		}
		cfg.ClientCAs = x509.NewCertPool()
		if !cfg.ClientCAs.AppendCertsFromPEM(issuers) {
			return nil, cli.Usagef("--tls-client-ca: %s has no certificate: write them in PEM", f.TLSClientCA)
		}
		cfg.ClientAuth = tls.VerifyClientCertIfGiven // probes have none
	}
	return cfg, nil
}

// listen serves clients over HTTP until ctx ends.
func (cmd *Serve) listen(ctx context.Context, p *cli.Program, r *running) error {
	secure, err := cmd.tls(r.log)
	if err != nil {
		return err
	}
	host, _ := cli.ListenHost(cmd.Listen) // plan has accepted it
	e := r.gateway.HTTP(cmd.Token)
	e.Certificates, e.Hosts, e.Origins = cmd.TLSClientCA != "", append(cmd.AllowHost, host), cmd.AllowOrigin
	e.ClientHeader = cmd.ClientHeader
	site := cli.Site{Shown: r.supervisor, Supervisor: r.supervisor, Hosts: cmd.AllowHost, TLS: secure, Log: r.log, Around: func(pages http.Handler) http.Handler {
		mux := http.NewServeMux()
		mux.Handle(endpointPath, e)
		for _, path := range cli.ProbePaths {
			mux.Handle(path, statusOnly(pages))
		}
		mux.Handle("/", e.Guard(pages))
		return mux
	}}
	web, err := cli.Serve(cmd.Listen, site)
	if err != nil {
		return err
	}
	for _, warning := range cmd.warnings(isInContainer()) {
		p.Errorf("%s", warning)
	}
	p.Errorf("clients connect to %s; the sessions are shown at %s", strings.TrimSuffix(web.URL, cli.PagePath)+endpointPath, web.URL)
	cmd.hint(p)
	<-ctx.Done()
	e.Close()
	web.Close()
	return nil
}

// statusOnly returns the handler of a probe that says nothing but its status: orchestrators have no token, and the words of a probe
// name servers.
func statusOnly(probe http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { probe.ServeHTTP(&wordless{w}, r) })
}

type wordless struct{ http.ResponseWriter }

func (*wordless) Write(words []byte) (int, error) { return len(words), nil }
