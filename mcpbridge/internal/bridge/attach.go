package bridge

import (
	"context"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// attach resumes a session that the server may still know. The question of [doubts]
// shows whether it does, and that it has no ping is an answer. Anything else is in doubt: then the control decides,
// and the session that it has opened is adopted if the first is dead. So the dial fails only if a new session
// cannot be opened.
func (cs *controls) attach(ctx context.Context, at *endpoint, req attempt) (*conn, *mcpbridge.Error) {
	quiet := req
	quiet.Down = nil // nobody owns the session before it has answered
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
		go c.endQuietly() // whoever dials does not wait for it
		c.discard()
		if second := cs.adopt(ctx, at, req); second != nil {
			return second, nil
		}
		return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Present, Detail: "the session has expired, and the next one was not opened in time"}
	}
	c.discard()
	return nil, e
}

// attachable returns whether the server knows a session that is attached to. The error is why the dial
// fails if it is not alive; with a verdict that is dead, an error says that the server has said so.
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
	if f.verdict == verdictUnsettled && c.Credentials != nil { // they are new by now
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
			last.Server = mcpbridge.Present // only a new session that cannot be opened shows that it is not there
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

// attachTimeout is how long a server has to answer on a session that is attached to, before a second one is opened.
const attachTimeout = time.Second
