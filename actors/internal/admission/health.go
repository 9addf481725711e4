package admission

// Ranks of the places of a server by their health.
const (
	downPlace Rank = 1
	upPlace   Rank = 2
)

// noteHealth notes the health of an endpoint at the servers whose PerKey has led to it.
func (ep *Endpoint) noteHealth() {
	to := Unranked
	switch {
	case ep.Down:
		to = downPlace
	case !ep.SeenAt.IsZero():
		to = upPlace
	}
	for _, p := range ep.places {
		if p != p.server.Home && p.health.Rank != to {
			p.server.health.Put(&p.health, to, p)
		}
	}
}

// Foremost returns the endpoint that shows the health of a server: of the places that PerKey has led to, one
// that is down, or else one that is up.
func (srv *Server) Foremost() *Endpoint {
	for _, of := range []Rank{downPlace, upPlace} {
		if p := srv.health.First(of); p != nil {
			return p.Endpoint
		}
	}
	return srv.Home.Endpoint
}

// Down returns how many of the places that PerKey has led to are known to be down.
func (srv *Server) Down() int { return srv.health.Len(downPlace) }
