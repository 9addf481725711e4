package cluster

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor/health"
)

// One of two hosts ends without leaving, so that the other one is fenced.
func TestFencedMemberSaysSoInItsProbeAndInInspect(t *testing.T) {
	members := startHosts(t, 2, new(logged))
	m := members[0]
	ready := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		health.Ready(m.Supervisor()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		return w
	}
	self := func() messages.MemberSnapshot {
		snap, err := m.Client().Inspect(t.Context())
		require.NoError(t, err)
		for _, one := range snap.Members {
			if one.Self {
				return one
			}
		}
		require.Fail(t, "the member is not in its own snapshot")
		return messages.MemberSnapshot{}
	}
	require.Equal(t, http.StatusOK, ready().Code)
	well := self()
	require.Empty(t, well.Fenced)
	require.NotZero(t, well.View)
	require.Greater(t, well.Lease, m.cfg.Lease/4)
	require.Eventually(t, func() bool { return self().Hop > 0 }, 10*time.Second, 50*time.Millisecond)

	members[1].network.close()
	require.Eventually(t, func() bool { return ready().Code == http.StatusServiceUnavailable }, 20*time.Second, 50*time.Millisecond)
	require.Contains(t, ready().Body.String(), "the member starts no calls: this member is cut off from the cluster")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := m.Client().CallTool(ctx, "s", "a", &mcp.CallToolParams{Name: "x"})
	require.ErrorIs(t, err, messages.CodeUnavailable)
	fenced := self()
	require.Equal(t, "this member is cut off from the cluster", fenced.Fenced)
	require.Equal(t, well.Refused+1, fenced.Refused)
	require.Zero(t, fenced.Lease)
}
