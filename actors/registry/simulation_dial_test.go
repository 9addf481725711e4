package registry

import (
	"context"
	"time"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// What may become of a dial.
const (
	dialOpens = iota
	dialIsAnsweredFirst
	dialIsSlow
	dialHangs
	dialOpensTooLate
	dialFindsNobody
	dialIsUnauthorized
	dialFindsSomethingElse
	dialPanics
	dialIgnoresItsEnd
	dialIsSentAway
	dialFailsAfterTheAnswer
	dialOutcomes
)

// Dial opens a session.
func (p *supervisor) Dial(ctx context.Context, req dial.Request) (dial.Conn, error) {
	p.work(ctx, "dial of "+req.Key.String(), nil)
	srv, there := p.servers[req.Key.Server]
	switch {
	case !there && req.Only:
		return nil, &mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone, Detail: "no such server"}
	case !there:
		return nil, &mcpbridge.Error{Class: mcpbridge.Invalid, Server: mcpbridge.Present, Detail: "no such server"}
	}
	at := p.s.addressOf(srv, req.Key)
	if srv.PerKey != nil && req.Resolved != nil {
		found := srv
		found.PerKey, found.URL = nil, at.name
		if err := req.Resolved(ctx, &found); err != nil {
			return nil, err
		}
		p.work(ctx, "dial of "+req.Key.String()+" at its address", nil)
	}
	where := srv.Name + "@" + at.name
	switch {
	case p.beside[req.Key] > 0, p.orphaned[req.Key]:
		where = "a connection that is adopted needs no permit, also if it has ended since: " + req.Key.String()
	case req.Only && srv.PerKey != nil:
		where = srv.Name + "@home" // nobody asks for the address of what others have left open
	}
	delete(p.orphaned, req.Key)
	p.open(req, 1)
	if p.dialing[where]++; p.dialing[where] > p.s.maxDials && !p.s.changed[srv.Name] && !p.s.outlived {
		p.s.violate("too many dials", "%d dials of %s at once", p.dialing[where], where)
	}
	conn, err := p.dial(ctx, req, at, where)
	p.dialing[where]--
	if err != nil {
		p.open(req, -1)
		return nil, err
	}
	return conn, nil
}

// dial opens a session, or fails.
func (p *supervisor) dial(ctx context.Context, req dial.Request, at *address, where string) (*simConn, error) {
	w, key := &p.s.world, req.Key
	failure := func(class mcpbridge.Class, presence mcpbridge.Presence) *mcpbridge.Error {
		return &mcpbridge.Error{Class: class, Server: presence, Detail: "the dial has failed", Err: ctx.Err()}
	}
	if c := p.adopt(ctx, req, at); c != nil {
		return c, nil
	}
	how := w.fault(dialOutcomes, w.dialRate)
	switch {
	case at.down && w.s.N(3) > 0:
		p.work(ctx, "dial of "+key.String()+" in an outage", func() bool { return ctx.Err() != nil || !at.down })
		if how = dialOpens; at.down || ctx.Err() != nil && w.fault(2, 2) == 0 {
			how = dialFindsNobody
		}
	case at.down, at.front:
		how = dialFindsNobody
	case ctx.Err() != nil && how != dialOpensTooLate:
		return nil, failure(mcpbridge.Unavailable, mcpbridge.Absent)
	}
	switch how {
	case dialIsAnsweredFirst, dialFailsAfterTheAnswer:
		if req.Answered != nil {
			req.Answered()
		}
		p.work(ctx, "answered dial of "+key.String(), nil)
		if how == dialFailsAfterTheAnswer || ctx.Err() != nil {
			return nil, failure(mcpbridge.Unavailable, mcpbridge.Present)
		}
	case dialIsSlow:
		p.work(ctx, "slow dial of "+key.String(), nil)
		if ctx.Err() != nil {
			return nil, failure(mcpbridge.Unavailable, mcpbridge.Absent)
		}
	case dialHangs, dialOpensTooLate:
		p.work(ctx, "hanging dial of "+key.String(), func() bool { return ctx.Err() != nil || w.healed })
		if how == dialHangs {
			err := failure(mcpbridge.Unavailable, mcpbridge.Absent)
			if ctx.Err() != nil && req.Resume == nil { // else nothing was sent that opens a session
				err = dial.LeaveOpen(*err, &simOpening{p: p, of: w.newSession(p, key, at)})
			}
			return nil, err
		}
	case dialFindsNobody:
		return nil, failure(mcpbridge.Unavailable, mcpbridge.Absent)
	case dialIsUnauthorized:
		return nil, failure(mcpbridge.Unauthorized, mcpbridge.Present)
	case dialFindsSomethingElse:
		return nil, failure(mcpbridge.Protocol, mcpbridge.Strange)
	case dialPanics:
		p.open(req, -1) // Dial does not return
		p.dialing[where]--
		panic(planted)
	case dialIgnoresItsEnd:
		p.count(req, -1) // the supervisor does not wait for it
		p.dialing[where]--
		p.work(context.Background(), "deaf dial of "+key.String(), func() bool { return ctx.Err() != nil })
		p.linger(4*time.Second, "end of the deaf dial of "+key.String())
		p.count(req, 1)
		p.dialing[where]++
		return nil, failure(mcpbridge.Unavailable, mcpbridge.Absent)
	case dialIsSentAway:
		return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Absent, Detail: "503", RetryAfter: 3 * time.Second}
	}
	c := &simConn{w: w, p: p, key: key, req: req, n: len(w.conns)}
	switch known := p.resumes(req, at); {
	case known != nil:
		c.of, c.attached = known, true
	case req.Only:
		return nil, &mcpbridge.Error{Class: mcpbridge.Expired, Session: mcpbridge.Gone, Detail: "404"}
	default:
		c.of = w.newSession(p, key, at)
	}
	return c.opened(), nil
}

// adopt returns the connection of the second session that is kept for the key, or nil. One that does not fit ends.
func (p *supervisor) adopt(ctx context.Context, req dial.Request, at *address) *simConn {
	k := p.adoptable[req.Key]
	switch {
	case k == nil:
		return nil
	case req.Only || k.of.at != at || ctx.Err() != nil:
		delete(p.adoptable, req.Key)
		go func() {
			p.work(context.Background(), "end of a second session that does not fit "+req.Key.String(), nil)
			k.of.known = false
			k.ended()
		}()
		return nil
	}
	delete(p.adoptable, req.Key)
	k.ended()
	p.s.Crossed("a second session was adopted")
	return (&simConn{w: &p.s.world, p: p, key: req.Key, req: req, n: len(p.s.conns), of: k.of}).opened()
}

// opened notes that a connection is open.
func (c *simConn) opened() *simConn {
	c.of.by = c.p
	c.w.conns = append(c.w.conns, c)
	c.w.s.Logf("%v is open for %s as %s", c, c.key, c.of.id)
	return c
}

// resumes returns the session that a dial resumes, or nil.
func (p *supervisor) resumes(req dial.Request, at *address) *served {
	if req.Resume == nil {
		return nil
	}
	for _, of := range p.s.sessions {
		if of.id != req.Resume.SessionID {
			continue
		}
		if of.told && p.s.store == nil && p.s.bugs == 0 && !p.s.meddles {
			p.s.violate("an expired session is resumed", "%s of %s", of.id, req.Key)
		}
		if of.known && of.at == at {
			if of.by != p {
				p.s.Crossed("a session of another process was resumed")
			}
			return of
		}
	}
	p.s.causes[req.Key]++ // that of the store has expired
	return nil
}

// open counts the transport of a dial. That which closes what others have left open belongs to no tenant.
func (p *supervisor) open(req dial.Request, by int) {
	p.count(req, by)
	s, key, tenant := p.s, req.Key, tenantOfScope(req.Key)
	if by < 0 {
		return
	}
	if len(s.meddledWith) > 0 {
		return // what a stopped actor has opened is closed beside what follows
	}
	if live := s.live(key); live > 1 {
		s.violate("two transports of a key", "%s has %d transports", key, live)
	}
	if most := p.cfg.MaxSessions; p.total > most {
		s.violate("the cap does not hold", "%d transports, and the cap is %d", p.total, most)
	}
	if most := p.cfg.MaxSessionsPerTenant; most > 0 && p.tenants[tenant] > most {
		s.violate("the quota of a tenant does not hold", "%d transports of %s, whose quota is %d", p.tenants[tenant], tenant, most)
	}
	total := p.total
	for of := range p.adoptable { // a second session uses the slot of its key
		if p.live[of] == 0 {
			total++
		}
	}
	if held := p.registry.gate.Sessions.Open; total > held {
		s.violate("a transport without a slot", "%d transports, and %d slots", total, held)
	}
}

// count counts the transport of a dial, and checks nothing.
func (p *supervisor) count(req dial.Request, by int) {
	p.live[req.Key] += by
	p.total += by
	if !req.Only {
		p.tenants[tenantOfScope(req.Key)] += by
	}
}
