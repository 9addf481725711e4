package bridge

import (
	"context"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// attach resumes a session that the server may still know. The checks of [doubts] show whether it does. The answer that
// there is no ping is enough. Without an answer the control decides, and if the session is dead, the dial adopts the
// control. So the dial fails only if no new session can be opened.
func (cs *controls) attach(ctx context.Context, at *endpoint, req attempt) (*conn, *mcpbridge.Error) {
	quiet := req
	quiet.Down = nil // the session has no owner before it has answered
	c, e := cs.opener.dial(ctx, at, quiet)
	if e != nil {
		return nil, e
	}
	v := verdictAlive
	if !req.Only {
		v, e = cs.attachable(ctx, c)
	}
	switch {
	case v == verdictAlive:
		c.belongsTo(req.DialRequest)
		c.info.Attached = true
		if req.Answered != nil {
			req.Answered()
		}
		return c, nil
	case v == verdictDead && e == nil:
		go c.endQuietly() // the dial does not wait for it
		c.discard()
		if second := cs.adopt(ctx, at, req); second != nil {
			return second, nil
		}
		return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Present, Detail: "the session has expired, and the next one was not opened in time"}
	}
	c.discard()
	return nil, e
}

// attachable returns whether the server knows a session that is to be resumed. With verdictUnsettled, the error is that of
// the dial. With verdictDead, there is an error only if the server has said that the session has expired.
func (cs *controls) attachable(ctx context.Context, c *conn) (verdict, *mcpbridge.Error) {
	isPinged := func(got answers) bool { return got[checkPing].read() == readKnown }
	judge := func(got answers) (f finding) {
		f = got.judge(func(*mcpbridge.Error) bool { return true }, c.hasList())
		if got[checkPing].hasNoPing() || isPinged(got) && got[checkList].read() != readRefused { // some servers answer a ping on any session
			f.verdict = verdictAlive
		}
		return f
	}
	isEnough := func(got answers) (enough, half bool) {
		f := judge(got)
		isHalf := isPinged(got) && got[checkList] == nil && c.hasList()
		return f.verdict != verdictUnsettled && !isHalf, isHalf || f.away || len(f.again) > 0
	}
	got := c.runChecks(ctx, attachTimeout, isEnough, checkPing, checkList)
	f := judge(got)
	if f.verdict == verdictUnsettled && c.Credentials != nil { // the first attempt may have refreshed them
		got = c.runChecks(wire.WithoutRefresh(ctx), attachTimeout, isEnough, checkPing, checkList)
		f = judge(got)
	}
	var last *mcpbridge.Error
	for _, a := range got {
		switch {
		case a.read() == readGone:
			return verdictDead, a.refusal
		case a != nil && a.refusal != nil:
			last = unavailable(a.refusal)
			last.Server = mcpbridge.Present // only a failed attempt to open a new session shows that the server is down
		}
	}
	switch {
	case f.verdict == verdictAlive:
		return verdictAlive, nil
	case last != nil && last.Class == mcpbridge.RateLimited:
		return verdictUnsettled, last
	case len(f.again) == 0:
		f.again = []check{checkPing, checkList}
	}
	v, failed := cs.compareUntil(ctx, c, got, f.again)
	switch {
	case v != verdictDead && isPinged(got):
		return verdictAlive, nil
	case v == verdictDead, v == verdictAlive && (failed == nil || failed.Class != mcpbridge.Unauthorized):
		return v, nil
	case failed != nil:
		return verdictUnsettled, failed
	case last == nil:
		last = &mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Present, Detail: "the server does not answer on the session"}
	}
	return verdictUnsettled, last
}

// attachTimeout is how long a server may take to answer on a session that is to be resumed. Then a control is opened.
const attachTimeout = time.Second
