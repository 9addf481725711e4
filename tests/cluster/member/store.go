package member

import (
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/resume/etcd"
)

// openStore opens the store that the members share, or none.
func openStore(cfg *Config) (store mcpbridge.Store, closed func() error, err error) {
	if !cfg.Shared {
		return nil, func() error { return nil }, nil
	}
	s, err := etcd.Open(etcd.Config{Endpoints: []string{cfg.Etcd}})
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}
