package bridge

import (
	"context"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/doubt"
)

// attach resumes a session that the server may still know. The checks of [doubt.Machine] show whether it does. The answer that
// there is no ping is enough. Without an answer the control decides, and if the session is dead, the dial adopts the
// control. So the dial fails only if no new session can be opened.
func (cs *controls) attach(ctx context.Context, at *endpoint, req attempt) (*conn, *mcpbridge.Error) {
	quiet := req
	quiet.Down = nil // the session has no owner before it has answered
	c, e := cs.opener.dial(ctx, at, quiet)
	if e != nil {
		return nil, e
	}
	v := doubt.Alive
	if !req.Only {
		v, e = c.doubts.attachable(ctx)
	}
	switch {
	case v == doubt.Alive:
		c.callbacks.owner.set(req.Request)
		c.info.Attached = true
		if req.Answered != nil {
			req.Answered()
		}
		return c, nil
	case v == doubt.Dead && e == nil:
		if session := c.link.Resumable(); session != nil {
			go session.EndQuietly() // the dial does not wait for it
		}
		c.discard() //nolint:errcheck // a session that was to be resumed stays
		if second := cs.adopt(ctx, at, req); second != nil {
			return second, nil
		}
		return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Present, Detail: "the session has expired, and the next one was not opened in time"}
	}
	c.discard() //nolint:errcheck // as above
	return nil, e
}

// attachable returns whether the server knows a session that is to be resumed. If that is unsettled, the error is that
// of the dial. If the session is dead, there is an error only if the server has said that the session has expired.
func (d *doubts) attachable(ctx context.Context) (doubt.Verdict, *mcpbridge.Error) {
	i := d.attach(ctx)
	switch {
	case i == nil:
		return doubt.Unsettled, &mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: "timed out while connecting"}
	case i.Verdict == doubt.Alive:
		return i.Verdict, nil
	case i.Verdict == doubt.Dead && (i.Refusal == nil || i.Refusal.Session != mcpbridge.Gone):
		return i.Verdict, nil
	case i.Verdict == doubt.Dead:
		return i.Verdict, i.Refusal
	case i.Failure != nil:
		return i.Verdict, i.Failure
	case i.Refusal != nil:
		e := unavailable(i.Refusal)
		e.Server = mcpbridge.Present // only a failed attempt to open a new session shows that the server is down
		return i.Verdict, e
	}
	return i.Verdict, &mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Present, Detail: "the server does not answer on the session"}
}
