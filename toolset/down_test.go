package toolset_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
)

// downServer dials a server in vain.
type downServer struct {
	dial.Dialer
	name string
}

func (d *downServer) Dial(ctx context.Context, req dial.Request) (dial.Conn, error) {
	if req.Key.Server == d.name {
		return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Absent, Detail: "connection refused"}
	}
	return d.Dialer.Dial(ctx, req)
}

// A toolset waits for ListTimeout for a server that is down, once, and meanwhile has what others list.
func TestServerThatIsDownIsWaitedForOnceAndDelaysNoOtherList(t *testing.T) {
	cfg := dial.Wrap(supervisor.Config{}, func(d dial.Dialer) dial.Dialer { return &downServer{d, "s0"} })
	gather(t, 2, cfg, nil, func(_ context.Context, c *crowd) {
		waits := func(want string, most time.Duration) {
			c.Helper()
			began := time.Now()
			require.Equal(c, want, c.tools("a"))
			require.LessOrEqual(c, time.Since(began), most)
		}
		listTimeout := 10 * time.Second
		go func() { // which is listed while the first call of Tools waits
			time.Sleep(listTimeout / 2)
			c.servers[1].add("z")
		}()
		waits("s1__a !s0:unavailable", listTimeout+time.Second)
		waits("s1__a s1__z !s0:unavailable", 0)
		for range 20 {
			time.Sleep(time.Minute)
			c.servers[1].add("y")
			time.Sleep(time.Second)
			waits("s1__a s1__z s1__y !s0:unavailable", 0)
		}
	})
}
