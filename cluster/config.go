package cluster

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mcpactor/mcpactor/supervisor"
)

// Config is the configuration of a member. The zero value of most fields is useful. Start
// copies it: what it points to is read-only from then on. Addresses have names or IP addresses, such as "[::1]:8090".
type Config struct {
	// Supervisor is the configuration of the member's own supervisor. Its Name is replaced by
	// Member. Members share a Store if each has a value that leads to the same records, such as
	// one of package cluster/etcdstore. Close it after Stop.
	Supervisor supervisor.Config

	// Name is the name of the cluster. Members of other clusters are refused. Defaults to
	// "mcpactor".
	Name string
	// Member is the name of this member in replies, events and snapshots. It must be unique
	// in the cluster. Defaults to the address at which others reach it.
	Member string
	// Listen is the host and port that other members connect to. With port 0, a free port is
	// used. Defaults to "127.0.0.1:0", or to the only one of Hosts.
	Listen string
	// Advertise is the host and port under which other members reach Listen, if they differ.
	// Defaults to Listen. It is required if Listen is on all interfaces, such as ":8090".
	Advertise string
	// TLS secures the connections between members, in both directions. Defaults to nil: Listen and
	// Advertise must be on the loopback interface, and a warning is logged.
	TLS *TLS

	// Hosts are the hosts and ports of all members, this one included, in the same order on all of them. Together
	// they decide who is a member, as long as more than half of them run: two of three, but both of two. The first start
	// needs all of them. Set one of Hosts, Etcd and InProcess.
	Hosts []string
	// Directory is where this member stores what it has agreed to with the other Hosts: a few hundred KB, written
	// four times in each Lease and for each member. It must survive a restart, and is created if it does not exist. Members
	// on one machine may share it. Required with Hosts, unless there is only one, or RestartedHostsJoinAnew is set.
	Directory string
	// RestartedHostsJoinAnew lets three or more Hosts run without a Directory. One that is restarted joins again as long
	// as the others that run are more than half of Hosts. If too many restart at once, none joins before all have.
	RestartedHostsJoinAnew bool
	// Etcd decides who is a member, if it has endpoints.
	Etcd Etcd
	// InProcess decides who is a member, in tests: a value that the members share, see [NewInProcess].
	InProcess *InProcess

	// Shards is the number of shards that keys belong to. A shard is what moves between members.
	// It must be the same on all members. Defaults to 4096, for up to 100 members: docs/cluster.md
	// has it for more.
	Shards int
	// Lease is how long a member may act after it has sent a renewal that Hosts or Etcd answer. It sends four in
	// each lease. A shorter one has dead members replaced sooner, and needs a faster network and disk. It should
	// be the same on all members: to change it, restart them one after the other. Defaults to 2 s. A single host needs no lease.
	Lease time.Duration
}

// Etcd configures a cluster whose members are known to etcd. While etcd does not answer, calls wait.
type Etcd struct {
	// Endpoints are the URLs of the servers of etcd. A member asks one of them, until that does not answer.
	Endpoints []string
	// Prefix is the prefix of the keys. Defaults to "/mcpactor/clusters".
	Prefix string
	// TLS configures the connections to endpoints that begin with https. Defaults to nil: the
	// authorities of the system, and no client certificate.
	TLS *tls.Config
	// Username and Password are the credentials, or empty. With them, Start fails if etcd does not
	// answer within 5 s. Prefer client certificates.
	Username, Password string
}

const (
	defaultShards = 4096
	maxShards     = 1 << 20
	defaultLease  = 2 * time.Second
	minLease      = 100 * time.Millisecond
)

// withDefaults returns the configuration with its defaults.
func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = "mcpactor"
	}
	switch {
	case c.Listen != "":
	case len(c.Hosts) == 1:
		c.Listen = c.Hosts[0]
	default:
		c.Listen = "127.0.0.1:0"
	}
	if c.Shards == 0 {
		c.Shards = defaultShards
	}
	if c.Lease == 0 {
		c.Lease = defaultLease
	}
	if c.Etcd.Prefix == "" {
		c.Etcd.Prefix = "/mcpactor/clusters"
	}
	c.Hosts, c.Etcd.Endpoints = slices.Clone(c.Hosts), slices.Clone(c.Etcd.Endpoints)
	return c
}

// unreachable reports whether an address has no host, or stands for all interfaces: others cannot
// connect to it.
func unreachable(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip, invalid := netip.ParseAddr(host)
	return err == nil && (host == "" || invalid == nil && ip.IsUnspecified())
}

// isNotInHost reports whether a character cannot be part of the name of a host.
func isNotInHost(r rune) bool {
	return r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsPrint(r)
}

// isEndpoint reports whether text is a URL, or a host and a port.
func isEndpoint(text string) bool {
	if host, _, err := net.SplitHostPort(text); err == nil {
		return host != ""
	}
	u, err := url.Parse(text)
	return err == nil && u.Scheme != "" && u.Host+u.Path != ""
}

// validate returns an error that names the invalid fields.
func (c Config) validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	address := func(field, value string) {
		host, port, err := net.SplitHostPort(value)
		number, invalid := strconv.ParseUint(port, 10, 16)
		switch {
		case err != nil || invalid != nil || number == 0 && field != "listen" || strings.ContainsFunc(host, isNotInHost):
			wrong("%s: %q is not a host and a port, such as 10.0.0.1:8090", field, value)
		}
	}
	if strings.ContainsFunc(c.Name, func(r rune) bool { return isNotInHost(r) || r == '/' || r == '@' }) {
		wrong("name: %q has a slash, an @, a space, or a character that is not printable", c.Name)
	}
	address("listen", c.Listen)
	switch {
	case c.Advertise != "":
		address("advertise", c.Advertise)
		if unreachable(c.Advertise) {
			wrong("advertise: %q has no host: set one that other members can connect to", c.Advertise)
		}
	case unreachable(c.Listen):
		wrong("advertise: is empty, but listen is %q: set a host and port that other members can connect to", c.Listen)
	}
	if c.Shards < 1 || c.Shards > maxShards {
		wrong("shards: is %d, it must be between 1 and %d", c.Shards, maxShards)
	}
	if c.Lease < minLease {
		wrong("lease: is %v, it must be at least %v", c.Lease, minLease)
	}
	kinds := 0
	for _, is := range []bool{len(c.Hosts) > 0, len(c.Etcd.Endpoints) > 0, c.InProcess != nil} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		wrong("hosts, etcd.endpoints, inProcess: %d of them are set, it must be one", kinds)
	}
	for i, host := range c.Hosts {
		address(fmt.Sprintf("hosts[%d]", i), host)
		if slices.Contains(c.Hosts[:i], host) {
			wrong("hosts[%d]: %q is listed twice", i, host)
		}
	}
	if own := cmp.Or(c.Advertise, c.Listen); len(c.Hosts) > 0 && !slices.Contains(c.Hosts, own) {
		wrong("hosts: %q, which is advertise or listen, is not among them", own)
	}
	switch {
	case len(c.Hosts) < 2 || c.Directory != "":
	case !c.RestartedHostsJoinAnew:
		wrong("directory: is empty: a host that forgets what it has agreed to cannot be trusted. Set a directory that survives a restart, or restartedHostsJoinAnew")
	case len(c.Hosts) == 2:
		wrong("directory: is empty, and there are two hosts: restartedHostsJoinAnew needs three")
	}
	for i, endpoint := range c.Etcd.Endpoints {
		if !isEndpoint(endpoint) {
			wrong("etcd.endpoints[%d]: %q is not a URL, such as https://10.0.0.1:2379", i, endpoint)
		}
	}
	if (c.Etcd.Username == "") != (c.Etcd.Password == "") {
		wrong("etcd.username, etcd.password: one of them is empty")
	}
	return errors.Join(errs...)
}
