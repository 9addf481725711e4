package dial

// Seam returns what the supervisor of a supervisor.Config dials with, given its bridge. The configuration has one that its users
// do not see, by which code of this module changes what is dialed with. A nil seam returns the bridge.
type Seam func(bridge Dialer) Dialer

// Dialer returns what the supervisor dials with.
func (s Seam) Dialer(bridge Dialer) Dialer {
	if s == nil {
		return bridge
	}
	return s(bridge)
}

// SeamOf returns the seam of the configuration that cfg points to. Package supervisor sets it.
var SeamOf func(cfg any) *Seam

// Replace returns a supervisor.Config whose supervisor dials with d in place of its bridge.
func Replace[Config any](cfg Config, d Dialer) Config {
	s := SeamOf(&cfg)
	before := *s
	*s = func(Dialer) Dialer { return before.Dialer(d) }
	return cfg
}

// Wrap returns a supervisor.Config whose supervisor dials with what wrap returns for its dialer.
func Wrap[Config any](cfg Config, wrap func(Dialer) Dialer) Config {
	s := SeamOf(&cfg)
	before := *s
	*s = func(bridge Dialer) Dialer { return wrap(before.Dialer(bridge)) }
	return cfg
}
