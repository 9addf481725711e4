package member

import (
	"errors"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// openStore opens the store that the members share, or none.
func openStore(cfg *Config) (store mcpbridge.Store, closed func(), err error) {
	if cfg.Shared {
		return nil, nil, errors.New("member: there is no shared store yet")
	}
	return nil, func() {}, nil
}
