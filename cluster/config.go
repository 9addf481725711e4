package cluster

import (
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

	"github.com/asynkron/protoactor-go/cluster"

	"github.com/mcpactor/mcpactor/supervisor"
)

// Config is the configuration of a member. The zero value of most fields is useful. Start
// copies it. Addresses have names or IPv4 addresses: Proto.Actor does not support IPv6 addresses.
type Config struct {
	// Supervisor is the configuration of the member's own supervisor. Its Name is replaced by
	// Member. The members may share a Store: give each member a value of its own that leads to the
	// same records, such as those of package cluster/etcdstore.
	Supervisor supervisor.Config

	// Name is the name of the cluster. Members of other clusters are ignored. Defaults to
	// "mcpactor".
	Name string
	// Member is the name of this member in replies, events and snapshots. It must be unique
	// in the cluster. Defaults to the address at which others reach it.
	Member string
	// Listen is the host and port that other members connect to. With port 0, a free port is
	// used. Defaults to "127.0.0.1:0".
	Listen string
	// Advertise is the host and port under which other members reach Listen, if they differ.
	// Defaults to Listen. It is required if Listen is on all interfaces, such as ":8090".
	Advertise string
	// TLS secures the connections between members, in both directions. Defaults to nil: members connect on one
	// machine only, Listen and Advertise must be on its loopback interface, and a warning is logged.
	TLS *TLS

	// Provider is how members find each other: "automanaged", "etcd" or "in-process". Leave it
	// empty with NewProvider.
	Provider string
	// Automanaged configures the provider "automanaged".
	Automanaged Automanaged
	// Etcd configures the provider "etcd".
	Etcd Etcd
	// InProcess is the provider "in-process", for tests: a value that the members share, see
	// [NewInProcess].
	InProcess *InProcess
	// NewProvider returns any other provider of Proto.Actor, such as that for Consul or
	// Kubernetes. It is called again each time the member joins anew. It must list this member at
	// the address of Advertise.
	NewProvider func() (cluster.ClusterProvider, error)

	// Shards is the number of shards that keys belong to. A shard is what moves between members.
	// It must be the same on all members. Defaults to 4096, for up to 100 members: docs/cluster.md
	// says how many suit more.
	Shards int
	// Lease is how long a member may act after others have confirmed that it is a member. It
	// should not be longer than the time after which the provider removes a member. Defaults
	// to 2 s.
	Lease time.Duration
	// Quorum is how many members, this one included, must confirm the membership. With
	// "etcd", an answer of etcd is enough instead. Defaults to more than half of the hosts of
	// "automanaged", if there are three or more, and to more than half of the members with "etcd".
	// Otherwise it defaults to 1: a member that is cut off continues to act, although the others
	// replace it.
	Quorum int
}

// Automanaged configures the provider that polls a list of hosts over HTTP.
type Automanaged struct {
	// Listen is the host and port on which this member answers polls. Defaults to the entry of Hosts
	// with the host of Config.Listen, if there is exactly one.
	Listen string
	// Hosts are the hosts and ports of all members, this one included.
	Hosts []string
	// Refresh is the time between two polls. Defaults to 500 ms.
	Refresh time.Duration
}

// Etcd configures the provider that registers members in etcd.
type Etcd struct {
	// Endpoints are the URLs of etcd. Required.
	Endpoints []string
	// Prefix is the prefix of the keys. Defaults to "/mcpactor/members".
	Prefix string
	// TLS configures the connections to endpoints that begin with https. Defaults to nil: the
	// authorities of the system, and no client certificate.
	TLS *tls.Config
	// Username and Password are the credentials, or empty. The member logs in each time that it
	// renews its registration, four times in each Lease: prefer client certificates.
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
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	if c.Shards == 0 {
		c.Shards = defaultShards
	}
	if c.Lease == 0 {
		c.Lease = defaultLease
	}
	if c.Automanaged.Refresh == 0 {
		c.Automanaged.Refresh = 500 * time.Millisecond
	}
	if c.Etcd.Prefix == "" {
		c.Etcd.Prefix = "/mcpactor/members"
	}
	c.Automanaged.Hosts, c.Etcd.Endpoints = slices.Clone(c.Automanaged.Hosts), slices.Clone(c.Etcd.Endpoints)
	if c.Automanaged.Listen == "" && c.Provider == "automanaged" {
		c.Automanaged.Listen = c.hostOf(c.Listen)
	}
	return c
}

// hostOf returns the entry of Automanaged.Hosts with the host of an address, or "" if there is not exactly one.
func (c Config) hostOf(address string) string {
	host, _, _ := net.SplitHostPort(address)
	var found []string
	for _, other := range c.Automanaged.Hosts {
		if h, _, _ := net.SplitHostPort(other); h == host {
			found = append(found, other)
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
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
		case strings.Contains(host, ":"):
			wrong("%s: %q is an IPv6 address, which Proto.Actor does not support here: use a name", field, value)
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
	if c.Quorum < 0 {
		wrong("quorum: is %d, it must not be negative", c.Quorum)
	}
	switch {
	case c.Provider != "" && c.NewProvider != nil:
		wrong("provider: is %q, but there is a newProvider as well: set one of them", c.Provider)
	case c.Provider == "automanaged":
		if len(c.Automanaged.Hosts) == 0 {
			wrong("automanaged.hosts: is empty: list the hosts of all members, this one included")
		}
		for i, host := range c.Automanaged.Hosts {
			address(fmt.Sprintf("automanaged.hosts[%d]", i), host)
			if slices.Contains(c.Automanaged.Hosts[:i], host) {
				wrong("automanaged.hosts[%d]: %q is listed twice", i, host)
			}
		}
		if c.Automanaged.Listen == "" {
			wrong("automanaged.listen: is empty, and it has no default, because not exactly one of automanaged.hosts has the host of listen: set it to the host and port at which this member answers polls")
		} else {
			address("automanaged.listen", c.Automanaged.Listen)
			if c.Automanaged.Listen == c.Listen {
				wrong("automanaged.listen: %q is listen, too: they must differ", c.Listen)
			}
		}
		if c.Automanaged.Refresh < 0 {
			wrong("automanaged.refresh: is negative")
		}
	case c.Provider == "etcd":
		if len(c.Etcd.Endpoints) == 0 {
			wrong("etcd.endpoints: is empty")
		}
		for i, endpoint := range c.Etcd.Endpoints {
			if !isEndpoint(endpoint) {
				wrong("etcd.endpoints[%d]: %q is not a URL, such as https://10.0.0.1:2379", i, endpoint)
			}
		}
		if (c.Etcd.Username == "") != (c.Etcd.Password == "") {
			wrong("etcd.username, etcd.password: one of them is empty")
		}
	case c.Provider == "in-process":
		if c.InProcess == nil {
			wrong("inProcess: is nil: share one that NewInProcess returns")
		}
	case c.Provider != "":
		wrong("provider: %q is none of automanaged, etcd and in-process; for others, set newProvider", c.Provider)
	case c.NewProvider == nil:
		wrong("provider: is empty: use automanaged, etcd or in-process, or set newProvider")
	}
	return errors.Join(errs...)
}

// needs says what a member that has not joined may be waiting for.
func (c *Config) needs() string {
	switch c.Provider {
	case "automanaged":
		return fmt.Sprintf(" (automanaged.hosts must list it, and %d of them must answer)", c.quorum(len(c.Automanaged.Hosts)))
	case "etcd":
		return " (etcd must answer)"
	case "":
		return fmt.Sprintf(" (newProvider must list it, at %s, and %d members must confirm it: quorum)", c.Advertise, c.quorum(1))
	}
	return fmt.Sprintf(" (%d members must confirm it: quorum)", c.quorum(1))
}

// quorum returns how many members must confirm the membership.
func (c Config) quorum(members int) int {
	switch {
	case c.Quorum > 0:
		return c.Quorum
	case c.Provider == "automanaged" && len(c.Automanaged.Hosts) > 2:
		return len(c.Automanaged.Hosts)/2 + 1
	case c.Provider == "etcd":
		return members/2 + 1
	}
	return 1
}
