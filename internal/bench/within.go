package bench

import "context"

// within is warm calls over HTTP with the server in our process, where callers and
// server share the processors as goroutines.
func (p *place) within() (all []*Case) {
	n := 64
	if p.cfg.Quick {
		n = 8
	}
	for _, w := range []wire{
		p.overHTTP(nameJSON, p.near.origin+pathJSON, p.tuned),
		p.overHTTP(nameSSE, p.near.origin+pathSSE, p.tuned),
	} {
		c := &Case{
			Scenario: "within", Params: params("callers", n, "transport", w.name),
			About: "a call of a trivial tool on an open session, of a server in the same process", Baseline: nameBare,
			contenders: []contender{
				{nameBare, startBare(w, n)},
				{nameUntuned, startBare(p.overHTTP(w.name, w.url, p.plain), n)},
				{nameMutexMap, startMutexMap(w.open, n)},
				{nameMessage, startMessage(w, n)},
				{nameClient, startClient(w, n)},
			},
		}
		c.countConns(func(context.Context) (int64, error) { return p.near.accepted.Load(), nil })
		all = append(all, c)
	}
	return all
}
