package member

import (
	"github.com/mcpactor/mcpactor/cluster/etcdstore"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// openStore opens the store that the members share, or none.
func openStore(cfg *Config) (store mcpbridge.Store, closed func() error, err error) {
	if !cfg.Shared {
		return nil, func() error { return nil }, nil
	}
	s, err := etcdstore.Open(etcdstore.Config{Endpoints: []string{cfg.Etcd}})
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}
