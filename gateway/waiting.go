package gateway

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

const (
	// firstPatience bounds the wait of initialize for several servers. Claude Code gives initialize 30 s.
	firstPatience = 25 * time.Second
	// listPatience bounds the wait of a list for a server. Claude Code gives a list 5 s. A client that gets no list is told when
	// it is there.
	listPatience = 4 * time.Second
	// downPatience bounds both waits for a server that is known to be down, and that of initialize for one that was silent before.
	downPatience = time.Second
)

// waiting says how long a request waits for a server whose list is not known. With the zero value, noWait, it does not wait.
type waiting struct {
	most  time.Duration
	first bool // it also waits until the server has answered
}

var noWait, shortWait = waiting{}, waiting{most: listPatience}

// firstWait returns how long initialize waits for one of n servers. wanted is [Config.Wait]. wasSilent is true if another
// client has waited for the server in vain.
func firstWait(n int, wanted time.Duration, wasSilent bool) waiting {
	switch {
	case n == 1 && wanted == 0: // a client without a gateway would wait for it
		return waiting{firstPatience, true}
	case wasSilent:
		return waiting{most: downPatience}
	}
	return waiting{most: cmp.Or(wanted, firstPatience)}
}

// isOver reports whether a request has waited long enough. answered is true if the server has answered initialize: then the
// wait ends after w.most, because the list may never come.
func (w waiting) isOver(waited time.Duration, answered bool) bool {
	return waited >= w.most && (answered || !w.first)
}

// rest returns how long a request waits for the other lists of a server once its tools are there.
func (w waiting) rest(waited time.Duration) waiting {
	most := max(0, w.most-waited)
	if w.first {
		most = max(most, downPatience)
	}
	return waiting{most: min(most, listPatience)}
}

// pause returns the time until a request looks at the server again.
func (w waiting) pause(waited time.Duration) time.Duration {
	if waited < w.most {
		return min(downPatience, w.most-waited)
	}
	return downPatience
}

// meet waits for the servers whose lists are not known, and fetches these.
func (c *client) meet(ctx context.Context) {
	began := time.Now()
	var all sync.WaitGroup
	servers := c.servers()
	for _, s := range servers {
		all.Go(func() {
			err := s.meet(ctx, firstWait(len(servers), c.g.cfg.Wait, s.endpoint.was()))
			// A client that leaves ends its session, whose error may be there first. One that leaves early has another reason than the server.
			gaveUp := err != nil && ctx.Err() != nil && time.Since(began) > listPatience
			if errors.Is(err, errSilent) || errors.Is(err, errSlow) || gaveUp {
				s.endpoint.note()
			}
		})
	}
	all.Wait()
}

// meet waits for a server. It fetches the tools, which come with what the server says about itself, and then the other lists.
func (s *served) meet(ctx context.Context, w waiting) error {
	began := time.Now()
	if _, err := s.lists["tools/list"].get(ctx, w); err != nil {
		return err
	}
	if _, answered := s.look(ctx); !answered {
		return nil // the tools were kept, and the server may not have started
	}
	can, rest := capabilitiesIn(s.introduced()), w.rest(time.Since(began))
	var all sync.WaitGroup
	for method, l := range s.lists {
		if things, _, _ := strings.Cut(method, "/"); can[things] != nil {
			all.Go(func() { l.get(ctx, rest) }) //nolint:errcheck // the request for the list says why there is none
		}
	}
	all.Wait()
	return nil
}

// The reasons why the list of a server is not there: the server has not answered initialize, or has not listed.
var (
	errSilent = errors.New("the server has not answered yet: a notification says when its list is there")
	errSlow   = errors.New("the server has not sent the list yet: a notification says when it is there")
)

// await waits for the end of an attempt to fetch a list, or returns why the wait is over. A client that asks a silent server
// for one list after the other waits once.
func (s *served) await(ctx context.Context, ended chan struct{}, w waiting) error {
	s.mu.Lock()
	silent := s.silent
	s.mu.Unlock()
	if s.endpoint.down() != nil {
		if cause, _ := s.look(ctx); cause != nil {
			return cause
		}
	}
	if silent {
		return errSilent
	}
	err := s.watch(ctx, ended, w)
	if !errors.Is(err, errSilent) {
		return err
	}
	s.noteSilent(true)
	select {
	case <-ended: // just now: the server is not silent
		s.noteSilent(false)
		return nil
	default:
		return err
	}
}

// noteSilent notes whether the client has waited for the server in vain.
func (s *served) noteSilent(silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = silent
}

// watch waits for the end of an attempt to fetch a list. It returns why the server is down, or at the end of the wait errSilent
// or errSlow.
func (s *served) watch(ctx context.Context, ended chan struct{}, w waiting) error {
	began, before := time.Now(), false
	for {
		select {
		case <-ended:
			return nil
		case <-time.After(w.pause(time.Since(began))):
		case <-ctx.Done():
			return errGone
		}
		cause, answered := s.look(ctx)
		switch {
		case cause != nil:
			return cause
		case !w.isOver(time.Since(began), answered && before): // a list may follow the answer at once
			before = answered
		case answered:
			return errSlow
		default:
			return errSilent
		}
	}
}

// look asks why the server is down, and whether it has answered. What one client learns so, all know that share the endpoint.
func (s *served) look(ctx context.Context) (cause error, answered bool) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if status := s.check(ctx); status != nil {
		if status.Cause != "" {
			s.endpoint.noteDown(errors.New(status.Cause))
		}
		answered = status.State == messages.StateReady || status.State == "" && status.Health == messages.HealthUp // on the session of another client
	}
	return s.endpoint.down(), answered
}
