// Package member is a member of a cluster that runs as a process of its own, under the
// command of a test. The process reads JSON lines from stdin: a [Config], and then
// [Command]s. It writes [Report]s, as JSON lines as well, to stdout, and its log to stderr.
//
// On SIGTERM it leaves the cluster while its agents go on, and exits with status 0. When its
// stdin ends, it exits at once.
package member

import (
	"time"

	"github.com/mcpactor/mcpactor/tests/cluster/history"
)

// ServerName is the name of the MCP server.
const ServerName = "counter"

// Config is the configuration of a member.
type Config struct {
	// Name is the name of the member in replies.
	Name string `json:"name"`
	// Witness says who keeps the view: "hosts" or "etcd".
	Witness string `json:"witness"`
	// Listen is the address that the member listens on, and Advertise the one at which others
	// reach it.
	Listen    string `json:"listen"`
	Advertise string `json:"advertise"`
	// Hosts are the addresses at which the members reach each other, and Directory is where they store what they agree to.
	Hosts     []string `json:"hosts,omitempty"`
	Directory string   `json:"directory"`
	// Etcd is the URL of etcd, for the view and for the store.
	Etcd string `json:"etcd,omitempty"`
	// Shared keeps the sessions in etcd.
	Shared bool `json:"shared,omitempty"`
	// URL is the endpoint of the MCP server.
	URL string `json:"url"`
	// Lease is the lease of the member.
	Lease time.Duration `json:"lease,omitempty"`
	// Certificate, Key and CA are PEM files. Without them nothing is encrypted.
	Certificate string `json:"certificate,omitempty"`
	Key         string `json:"key,omitempty"`
	CA          string `json:"ca,omitempty"`
}

// Command is a command to the process. One field is set.
type Command struct {
	// Load starts agents.
	Load *Load `json:"load,omitempty"`
	// Quiet ends the agents. The process reports when all their calls are answered.
	Quiet bool `json:"quiet,omitempty"`
}

// Load are agents that call tools.
type Load struct {
	// Scopes are the scopes.
	Scopes []string `json:"scopes"`
	// Rate is the number of calls in a second. With 0, there is one call for each scope, and
	// all of them are started at once.
	Rate int `json:"rate"`
	// Timeout is the time that each call has.
	Timeout time.Duration `json:"timeout"`
	// Seed selects the order of the scopes, which have the same number of calls, and the tools.
	Seed uint64 `json:"seed"`
}

// Report is a report of the process. One field is set.
type Report struct {
	// Call is a call that was answered, or whose deadline has long passed.
	Call *history.Call `json:"call,omitempty"`
	// Act is something that the member has done for a key, when it has ended.
	Act *history.Act `json:"act,omitempty"`
	// View is what the member knows of the cluster, after each change.
	View *View `json:"view,omitempty"`
	// Quiet says that the agents have ended.
	Quiet *Quiet `json:"quiet,omitempty"`
	// Error is why the process does not work.
	Error string `json:"error,omitempty"`
}

// Record adds the report of a member to a history.
func (r *Report) Record(h *history.History, member string) {
	switch {
	case r.Call != nil:
		h.Calls = append(h.Calls, r.Call)
	case r.Act != nil:
		h.Acts = append(h.Acts, r.Act)
	case r.View != nil:
		h.States = append(h.States, &history.State{Member: member, At: r.View.At, Serving: r.View.Serving})
	}
}

// View is what a member knows of the cluster.
type View struct {
	At time.Time `json:"at"`
	// ID is the member's own id, which changes when it was removed by the others and has
	// joined again.
	ID string `json:"id"`
	// Members are the names of the members, sorted. A member that is leaving is not among
	// them.
	Members []string `json:"members"`
	// Serving says whether the member is in the view, and has its lease.
	Serving bool `json:"serving"`
}

// Quiet is the end of the agents.
type Quiet struct {
	// Calls is the number of calls that they have started.
	Calls int `json:"calls"`
	// Leaks are goroutines that are left after the member has left the cluster, or empty.
	Leaks string `json:"leaks,omitempty"`
}
