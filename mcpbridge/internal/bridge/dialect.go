package bridge

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/singleflight"
)

const (
	// protocolLegacy is the version requested from a server that does not answer server/discover.
	protocolLegacy = "2025-11-25"
	// legacyFor is how long the bridge remembers that a server speaks only older protocols. A newer version of the server
	// may speak more.
	legacyFor = time.Hour
	// costlyFor is the same for a server that costs time when it is asked.
	costlyFor = 7 * 24 * time.Hour
)

// dialect is what is known of the protocols that a server speaks. It decides which one a session asks for.
type dialect struct {
	requests singleflight.Group // to the store
	recalled atomic.Bool        // the store has said what it has

	mu    sync.Mutex
	facts facts
	saved facts // that the store has
}

// facts are what a dialect knows, as a store keeps them.
type facts struct {
	Legacy bool   `json:"legacy,omitempty"` // the server speaks only protocols that are older than server/discover
	Costly bool   `json:"costly,omitempty"` // server/discover has ended its process, or was not answered
	Late   bool   `json:"late,omitempty"`   // it answers server/discover, but takes longer than discoverSilence
	New    bool   `json:"new,omitempty"`    // it refuses initialize
	Known  string `json:"known,omitempty"`  // the name and version of the server that was asked
	Asked  int64  `json:"asked,omitempty"`  // when it was asked, in seconds since 1970
}

// isOld reports whether the server is not to be asked for newer protocols.
func (d *dialect) isOld() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	age := time.Since(time.Unix(d.facts.Asked, 0))
	return d.facts.Legacy && (age < legacyFor || d.facts.Costly && age < costlyFor)
}

// isStateless reports whether the server has refused initialize.
func (d *dialect) isStateless() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.facts.New
}

// setStateless remembers whether the server refuses initialize, and reports whether that is new.
func (d *dialect) setStateless(refuses bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.facts.New
	d.facts.New = refuses
	if refuses {
		d.facts.Legacy, d.facts.Costly = false, false
	}
	return before != refuses
}

// isLate reports whether it takes the server long to answer server/discover.
func (d *dialect) isLate() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.facts.Late
}

// setLegacy remembers that the server does not answer server/discover.
func (d *dialect) setLegacy(costly bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.facts = facts{Legacy: true, Costly: costly, Asked: time.Now().Unix()}
}

// setLate remembers that the server answers server/discover late.
func (d *dialect) setLate() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.facts.Legacy, d.facts.Costly, d.facts.Late = false, false, true
}

// learn remembers whether a server speaks only older protocols. Then later sessions do not send server/discover first.
// Another server, or another version of it, is asked again. silent is true if server/discover was given up.
func (d *dialect) learn(requested string, silent bool, server *mcp.InitializeResult) {
	var who string
	if server.ServerInfo != nil {
		who = server.ServerInfo.Name + " " + server.ServerInfo.Version
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f := &d.facts
	f.New = f.New && server.ProtocolVersion > protocolLegacy
	f.Legacy = server.ProtocolVersion <= protocolLegacy && (requested == "" || f.Known == "" || f.Known == who)
	f.Known = who
	if requested == "" {
		f.Asked, f.Costly = time.Now().Unix(), silent
		f.Late = f.Late && !f.Legacy
	}
}

// unlearn forgets what learn has remembered, because the server has refused.
func (d *dialect) unlearn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.facts.Legacy = false
}

// forget forgets what is known.
func (d *dialect) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.facts = facts{}
}
