package bridge

import (
	"context"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/doubt"
)

// The methods of this file make conn the [sessionInDoubt] of its doubts.

func (c *conn) state() doubt.Session {
	session := c.link.Resumable()
	return doubt.Session{
		Now: time.Now(), Begun: c.begun.Load(), Succeeded: c.result.Load(),
		ConnectTimeout: c.ConnectTimeout,
		HasEnded:       c.Cut.Err() != nil,
		HasID:          c.cs != nil && c.hasID(),
		HasList:        c.info.Server != nil && listOf(c.info.Server.Capabilities) != nil,
		IsFresh:        session != nil && session.IsFresh(),
		MayRefuse:      c.link.MayRefuseSession() && (!c.info.Stateless || !c.callbacks.uses.isModern),
		MayRefresh:     c.Credentials != nil,
		Resumable:      session != nil,
	}
}

func (c *conn) untilCut() context.Context { return c.Cut }
func (c *conn) known()                    { c.link.Succeeded() }
func (c *conn) expire(e *mcpbridge.Error) { c.link.Expire(e) }

// open opens a control. While the server is away, the pace of the endpoint limits that.
func (c *conn) open(ctx context.Context, decision doubt.Decision) (control, *mcpbridge.Error) {
	if decision.IsAway && !c.at.pace.mayOpen() {
		return nil, nil
	}
	p := freePermit
	if !decision.IsFree {
		var err error
		if p, err = c.callbacks.owner.permit(ctx); err != nil {
			return nil, nil
		}
	}
	k, e := c.controls.open(ctx, c, p)
	if decision.IsAway {
		c.at.pace.opened(e == nil)
	}
	if e != nil {
		p.ended()
		return nil, e
	}
	p.opened()
	return k, nil
}
