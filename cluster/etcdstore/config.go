package etcdstore

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
)

// defaultPrefix is the default of [Config.Prefix].
const defaultPrefix = "/mcpactor/sessions/"

// Config is the configuration of a [Store]. Endpoints or Client is required.
type Config struct {
	// Endpoints are the addresses of the etcd servers, such as "https://etcd-1:2379". One of them is asked, until it does not answer
	// in 0.9 s, or fails.
	Endpoints []string
	// TLS is the configuration of connections to the servers: the CA that signed their
	// certificates, and the client's certificate if they ask for one. Nil means without TLS,
	// unless an endpoint has the scheme https.
	TLS *tls.Config
	// Username and Password are those of a user of etcd. Both are empty if the servers ask for
	// none, or use the client's certificate.
	Username, Password string
	// DialTimeout is how long [Open] waits for the servers to accept Username and Password.
	// Defaults to 5 seconds.
	DialTimeout time.Duration
	// Client is used instead of the fields above. The caller closes it, after the store.
	Client *clientv3.Client
	// Prefix begins the names of all records. Programs with the same prefix share their
	// sessions. Defaults to "/mcpactor/sessions/".
	Prefix string
	// MaxAge is how long a record is kept after it was last saved. It may be kept for a tenth
	// longer. Raise it if servers keep sessions for longer. Defaults to 30 days; -1 keeps
	// all records.
	MaxAge time.Duration
}

// String returns the endpoints and the prefix, without the user and the password.
func (c Config) String() string {
	if c.Client != nil {
		return "etcd, prefix " + c.Prefix
	}
	return fmt.Sprintf("etcd at %s, prefix %s", strings.Join(c.Endpoints, ","), c.Prefix)
}

// Format writes String for every verb: "%#v" would show the password.
func (c Config) Format(s fmt.State, _ rune) { io.WriteString(s, c.String()) } //nolint:errcheck // fmt has nowhere to report it

// LogValue returns String.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// withDefaults returns a copy with all fields set.
func (c Config) withDefaults() Config {
	if c.DialTimeout == 0 {
		c.DialTimeout = 5 * time.Second
	}
	if c.Prefix == "" {
		c.Prefix = defaultPrefix
	}
	if c.MaxAge == 0 {
		c.MaxAge = clusterapi.DefaultMaxAge
	}
	return c
}

// validate reports the first field that is wrong, after withDefaults.
func (c Config) validate() error {
	switch {
	case c.Client == nil && len(c.Endpoints) == 0:
		return errors.New("endpoints: there are none, and no client: name the servers")
	case c.Client != nil && (len(c.Endpoints) > 0 || c.TLS != nil || c.Username != "" || c.Password != ""):
		return errors.New("client: has its own endpoints, TLS and user: leave these fields empty")
	case (c.Username == "") != (c.Password == ""):
		return errors.New("username, password: one of them is empty")
	case c.DialTimeout < 0:
		return fmt.Errorf("dialTimeout: %v is negative", c.DialTimeout)
	case c.MaxAge != clusterapi.Forever && c.MaxAge < time.Second:
		return fmt.Errorf("maxAge: %v is below a second: -1 keeps all records", c.MaxAge)
	}
	return nil
}
