package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

func TestHostThatCannotWriteItsLogSaysSo(t *testing.T) {
	cfg := Config{Hosts: []string{"127.0.0.1:1"}, Advertise: "127.0.0.1:1", Directory: filepath.Join(t.TempDir(), "members"), Lease: minLease}
	h, err := newHosts(&cfg, zerolog.Nop(), func(any) {})
	require.NoError(t, err)
	defer h.close()
	require.NoError(t, os.RemoveAll(cfg.Directory))
	h.begin(nil)
	<-h.ended
	require.Contains(t, h.lacks(), "the log of the host cannot be written: open "+cfg.Directory)
}

// CloseLog closes the log of a host that runs, which can no longer be written.
func CloseLog(m *Member) {
	h := m.witness.(*hosts)
	h.do(func() { h.log.Close() })
}
