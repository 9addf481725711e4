package dial

// Seam is how code of this module changes what the supervisor of a supervisor.Config dials with. The configuration has a seam
// that its users do not see.
type Seam struct {
	dialer Dialer // in place of the bridge, or nil
	wrap   func(Dialer) Dialer
}

// Dialer returns what the supervisor dials with, given its bridge.
func (s *Seam) Dialer(bridge Dialer) Dialer {
	d := bridge
	if s.dialer != nil {
		d = s.dialer
	}
	if s.wrap != nil {
		d = s.wrap(d)
	}
	return d
}

// SeamOf returns the seam of the configuration that cfg points to. Package supervisor sets it.
var SeamOf func(cfg any) *Seam

// Replace returns a supervisor.Config whose supervisor dials with d in place of its bridge.
func Replace[Config any](cfg Config, d Dialer) Config {
	SeamOf(&cfg).dialer = d
	return cfg
}

// Wrap returns a supervisor.Config whose supervisor dials with what wrap returns for its dialer.
func Wrap[Config any](cfg Config, wrap func(Dialer) Dialer) Config {
	s := SeamOf(&cfg)
	inner := s.wrap
	s.wrap = func(d Dialer) Dialer {
		if inner != nil {
			d = inner(d)
		}
		return wrap(d)
	}
	return cfg
}
