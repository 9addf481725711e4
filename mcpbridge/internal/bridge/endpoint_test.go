package bridge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

func TestForgetForgetsWhichProtocolsAndTransportsAServerSpeaks(t *testing.T) {
	b := New([]mcpbridge.Server{{Name: "s", URL: "http://test"}}, nil)
	defer b.Close()
	at := b.servers["s"]
	at.usesOlder.Store(true)
	at.dialect.facts = facts{Legacy: true, Known: "s 1", Asked: time.Now().Unix()}
	require.Equal(t, protocolLegacy, at.version(nil))
	b.Forget("unknown")
	require.Equal(t, protocolLegacy, at.version(nil))
	b.Forget("s")
	require.Empty(t, at.version(nil), "the newest is tried first")
	require.Same(t, at.newest, at.transport())
	require.Empty(t, at.dialect.facts)
}
