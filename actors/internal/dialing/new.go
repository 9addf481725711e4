package dialing

// New returns dialing without sessions.
func New(with With) *Dialing {
	d := &Dialing{With: with}
	d.gateDue.What, d.idleDue.What = d.onGateDue, d.EvictIdle
	return d
}
