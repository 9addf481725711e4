package gateway

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// silence remembers that clients have waited for a server in vain, until the server answers. It is kept with the lists, for later
// processes.
type silence struct {
	store mcpbridge.Store
	key   messages.Key // of the record
}

// newSilence returns the silence of a server. One with another command or URL has another class, and another silence.
func newSilence(store mcpbridge.Store, server, class string) *silence {
	return &silence{store: store, key: recordkey.List(server, "silence "+class)}
}

// storePatience is how long the store may take.
const storePatience = 2 * time.Second

// was reports whether a client has waited in vain.
func (s *silence) was() bool {
	ctx, cancel := context.WithTimeout(context.Background(), storePatience)
	defer cancel()
	record, err := s.store.Load(ctx, s.key)
	return err == nil && record != nil
}

// note notes that a client has waited in vain.
func (s *silence) note() {
	ctx, cancel := context.WithTimeout(context.Background(), storePatience)
	defer cancel()
	s.store.Save(ctx, s.key, &mcpbridge.Record{List: json.RawMessage(`{}`)}) //nolint:errcheck // later clients wait for longer then
}

// end notes that the server has answered.
func (s *silence) end() {
	ctx, cancel := context.WithTimeout(context.Background(), storePatience)
	defer cancel()
	s.store.Delete(ctx, s.key) //nolint:errcheck // later clients wait for less long then
}
