package bridge

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
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
	mu       sync.Mutex
	facts    facts
	saved    facts         // that the store has
	recalled chan struct{} // closed when the store was asked; nil before
}

// facts are what a dialect knows, as a store keeps them.
type facts struct {
	Legacy bool   `json:"legacy,omitempty"` // the server speaks only protocols that are older than server/discover
	Costly bool   `json:"costly,omitempty"` // server/discover has ended its process, or was not answered
	Late   bool   `json:"late,omitempty"`   // it answers server/discover, but takes longer than discoverSilence
	Known  string `json:"known,omitempty"`  // the name and version of the server that was asked
	Asked  int64  `json:"asked,omitempty"`  // when it was asked, in seconds since 1970
}

// discovery is what became of server/discover in a handshake.
type discovery int32

const (
	notAsked       discovery = iota
	undiscovered             // it has no result, or not yet
	discovered               // it had a result in time
	silent                   // the server has not answered it in time, and was sent initialize
	discoveredLate           // the same, and then it had a result
)

// isOld reports whether the server is not to be asked for newer protocols.
func (d *dialect) isOld() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	age := time.Since(time.Unix(d.facts.Asked, 0))
	return d.facts.Legacy && (age < legacyFor || d.facts.Costly && age < costlyFor)
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
// Another server, or another version of it, is asked again.
func (d *dialect) learn(requested string, how discovery, server *mcp.InitializeResult) {
	var who string
	if server.ServerInfo != nil {
		who = server.ServerInfo.Name + " " + server.ServerInfo.Version
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f := &d.facts
	f.Legacy = server.ProtocolVersion <= protocolLegacy && how != discoveredLate && (requested == "" || f.Known == "" || f.Known == who)
	f.Known = who
	if requested == "" {
		f.Asked, f.Costly = time.Now().Unix(), how == silent
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

// record is where a store keeps what is known of a dialect. A nil record keeps nothing.
type record struct {
	store mcpbridge.Store
	key   messages.Key
}

// recall asks the store, once, what an earlier process has found out. It may block until ctx ends.
func (d *dialect) recall(ctx context.Context, in *record) {
	if in == nil {
		return
	}
	d.mu.Lock()
	recalled := d.recalled
	if recalled == nil {
		d.recalled = make(chan struct{})
		defer close(d.recalled)
	}
	d.mu.Unlock()
	if recalled != nil {
		select {
		case <-recalled:
		case <-ctx.Done():
		}
		return
	}
	found, err := in.store.Load(ctx, in.key)
	var known facts
	if err != nil || found == nil || json.Unmarshal(found.List, &known) != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.facts, d.saved = known, known
}

// remember saves what is known, if it spares a later process a start or a wait, or if that is no longer so. It may block
// until ctx ends.
func (d *dialect) remember(ctx context.Context, in *record) {
	data, changed := d.toSave()
	if in != nil && changed {
		in.store.Save(ctx, in.key, &mcpbridge.Record{List: data}) //nolint:errcheck // a later process finds it out again
	}
}

// toSave returns what is to be saved, once.
func (d *dialect) toSave() (data []byte, changed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, before := d.facts, d.saved
	if now == before || !now.Costly && !now.Late && !before.Costly && !before.Late {
		return nil, false
	}
	d.saved = now
	data, err := json.Marshal(now)
	return data, err == nil
}
