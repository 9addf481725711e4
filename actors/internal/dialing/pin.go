package dialing

import "github.com/mcpactor/mcpactor/actors/internal/table"

// Pin keeps a session from being evicted as long as there is a reason.
func (d *Dialing) Pin(reg *table.Registration, why table.Pins) {
	reg.Pins = why
	if pinned := why.ByCommand || why.ByHandles; pinned != reg.Pinned {
		d.Gate.Pin(&reg.Session, pinned)
		d.Touch(reg)
	}
}

// PinBound pins a session because handles are bound to it, or because they no longer are.
func (d *Dialing) PinBound(reg *table.Registration, bound bool) {
	d.Pin(reg, table.Pins{ByCommand: reg.ByCommand, ByHandles: bound})
}
