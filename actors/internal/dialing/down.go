package dialing

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/jobs"
	"github.com/mcpactor/mcpactor/actors/internal/table"
)

// ServerUp notes that a server has answered a session.
func (d *Dialing) ServerUp(reg *table.Registration) {
	now := time.Now()
	if ep := reg.Place.Endpoint; ep.Down || ep.SeenAt.IsZero() {
		d.Reports.ServerUp(reg, now)
	}
	d.Gate.Up(&reg.Session, now)
}

// sendServerDownToAll fails the waiting calls of all sessions that are queued for an
// endpoint.
func (d *Dialing) sendServerDownToAll(ep *admission.Endpoint) {
	all := d.Table.Cursor(func(server string) bool {
		srv := d.Table.Servers[server]
		return srv != nil && (srv.Turns.Home.Endpoint == ep || srv.PerKey != nil)
	})
	tell := func(reg *table.Registration) {
		if reg.Queued() && reg.Place.Endpoint == ep && ep.Down {
			d.sendServerDown(reg)
		}
	}
	d.Jobs.Do(&jobs.Job{Step: func() bool { return all.Step(tell) }})
}

// sendServerDown fails the waiting calls of a session that is queued for a server that is
// down.
func (d *Dialing) sendServerDown(reg *table.Registration) {
	ep := reg.Place.Endpoint
	reg.Send(&contract.ServerDown{Cause: reg.CauseOf(ep), RetryAt: ep.Next})
}
