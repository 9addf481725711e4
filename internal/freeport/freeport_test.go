package freeport_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/freeport"
)

func TestAddressIsFree(t *testing.T) {
	addr, err := freeport.Addr("127.0.0.1")
	require.NoError(t, err)
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	defer l.Close()
	require.Less(t, l.Addr().(*net.TCPAddr).Port, 30_000)
}
