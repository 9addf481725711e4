package bridge

import (
	"context"
	"math/rand/v2"
	"strings"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// The methods of this file make conn the [subject] of its doubts.

func (c *conn) mayRefuse() bool {
	return c.link.MayRefuseSession() && (!c.info.Stateless || !c.isModern())
}

func (c *conn) operations() uint64               { return c.begun.Load() }
func (c *conn) succeededSince(count uint64) bool { return c.result.Load() > count }
func (c *conn) untilCut() context.Context        { return c.Cut }
func (c *conn) expire(e *mcpbridge.Error)        { c.link.Expire(e) }

// becomesKnown repeats the checks on a session that has answered nothing since initialize: its server may not
// know it yet. It reports whether the server knows the session at last, with the same credentials.
func (c *conn) becomesKnown(ctx context.Context, got answers) bool {
	session := c.link.Resumable()
	if session == nil || !session.IsFresh() {
		return false
	}
	for range wire.WhileFresh(ctx) {
		again := c.runChecks(ctx, checkTimeout, untilAll, checkPing, checkList)
		for which, a := range again {
			if a.read() == readKnown && got[which].read() == readRefused {
				c.link.Succeeded()
				return haveSameCredentials(a, got[which])
			}
		}
	}
	return false
}

// control compares with a second session. While the server is away, the pace of the endpoint limits that.
func (c *conn) control(ctx context.Context, got answers, again []check, isAway bool) verdict {
	if isAway && !c.at.pace.mayOpen() {
		return verdictAway
	}
	p := freePermit
	if o := c.owner.Load(); o != nil && o.admit != nil {
		var err error
		if p.opened, p.ended, err = o.admit(ctx); err != nil {
			return verdictAway
		}
	}
	v, e := c.seconds.compare(ctx, c, got, again, isAway, p)
	if isAway {
		c.at.pace.opened(e == nil)
	}
	return v
}

func (c *conn) repeat(ctx context.Context, which check) *answer {
	return c.runChecks(ctx, checkTimeout, untilAll, which)[which]
}

// asUnknown runs a check with a session id that was never issued, and looks like that of this session.
func (c *conn) asUnknown(ctx context.Context, which check) *mcpbridge.Error {
	return c.try(ctx, neverIssued(c.cs.ID()), c.checkFunc(which)).refusal
}

// neverIssued returns a random id with digits and letters where the given one has them.
func neverIssued(id string) string {
	isHex := strings.Trim(strings.ToLower(id), "0123456789abcdef-") == ""
	return strings.Map(func(r rune) rune {
		letters := 26
		if isHex {
			letters = 6
		}
		switch {
		case '0' <= r && r <= '9':
			return '0' + rune(rand.IntN(10))
		case 'a' <= r && r <= 'z':
			return 'a' + rune(rand.IntN(letters))
		case 'A' <= r && r <= 'Z':
			return 'A' + rune(rand.IntN(letters))
		}
		return r
	}, id)
}

// hasList reports whether the server has declared a list.
func (c *conn) hasList() bool { return listOf(c.info.Server.Capabilities) != nil }
