package cluster

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemberDialsNoAddressThatIsNotListed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	address := listener.Addr().String()
	_, err = (&Config{Hosts: []string{"127.0.0.1:1"}}).dial(t.Context(), address)
	require.ErrorContains(t, err, "is not one of hosts")
	for _, cfg := range []Config{{Hosts: []string{address}}, {}} {
		conn, err := cfg.dial(t.Context(), address)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
}
