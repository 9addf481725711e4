package cluster

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/cluster/internal/mesh"
	"github.com/mcpactor/mcpactor/cluster/internal/node"
	"github.com/mcpactor/mcpactor/cluster/internal/quorum"
	"github.com/mcpactor/mcpactor/cluster/internal/view"
)

// ticksPerLease is how often raft looks at the time in each lease.
const ticksPerLease = 20

// hosts is the witness of a cluster whose hosts keep the view, with raft. One goroutine uses the host and its log.
type hosts struct {
	cfg    *Config
	logger zerolog.Logger
	tell   func(any)
	host   *quorum.Host
	log    *quorum.Log // nil without a directory
	links  map[string]*mesh.Link
	inbox  chan func() // for the goroutine
	status atomic.Pointer[string]

	ctx    context.Context
	cancel context.CancelFunc
	ended  chan struct{} // closed when the goroutine has ended
}

// newHosts returns the witness, which goes on with what the host has stored.
func newHosts(cfg *Config, n *network, logger zerolog.Logger, tell func(any)) (*hosts, error) {
	h := &hosts{cfg: cfg, logger: logger, tell: tell, links: map[string]*mesh.Link{}, inbox: make(chan func(), 1024), ended: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	state := quorum.State{ID: quorum.NewID()}
	var err error
	if cfg.Directory != "" {
		if h.log, state, err = quorum.OpenLog(cfg.Directory, cfg.Advertise); err != nil {
			return nil, fmt.Errorf("cluster: directory: %w", err)
		}
	}
	if h.host, err = quorum.NewHost(cfg.Advertise, cfg.Hosts, state); err != nil {
		close(h.ended) // it has not begun
		h.close()
		return nil, fmt.Errorf("cluster: directory: %w", err)
	}
	for _, host := range cfg.Hosts {
		if host != cfg.Advertise {
			h.links[host] = n.Mesh.Link(link.Address{Host: host})
		}
	}
	go h.run()
	return h, nil
}

// run runs the host until the witness is closed, or the host cannot continue.
func (h *hosts) run() {
	defer close(h.ended)
	if err := h.serve(); err != nil {
		status := "the host has stopped: " + err.Error()
		h.status.Store(&status)
		h.logger.Error().Str("member", h.cfg.Member).Err(err).Msg("host has stopped: the member takes no part any longer, and must be restarted")
	}
}

// serve does what is due. Raft panics if the log lacks what the others have got from this host.
func (h *hosts) serve() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("raft panicked (if the log was restored from a copy, remove it, and the host joins as a new one): %v", r)
			h.logger.Error().Str("member", h.cfg.Member).Interface("reason", r).Bytes("stack", debug.Stack()).Msg("raft panicked")
		}
	}()
	ticker := time.NewTicker(h.cfg.Lease / ticksPerLease)
	defer ticker.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return nil
		case do := <-h.inbox:
			do()
		case <-ticker.C:
			h.host.Tick()
			h.note()
		}
		if err := h.drive(); err != nil {
			return fmt.Errorf("the log of the host cannot be written: %w", err)
		}
	}
}

// note stores what lacks returns.
func (h *hosts) note() {
	status := ""
	if !h.host.Led() {
		lacks, fresh, remedy := h.host.Lacks(), h.host.Fresh(), ""
		switch {
		case len(lacks)+len(fresh) < len(h.cfg.Hosts): // one has a log
			if status = "more than half of the hosts that ran last must run, or the one that stopped last"; len(fresh) > 0 {
				status += "; without a log: " + strings.Join(fresh, ", ")
			}
			remedy = "; if those machines or their directories are lost, stop all hosts, remove Config.Directory of each, and start them with Hosts that has only these"
		case len(lacks) > 0:
			status = "all hosts must start once"
		default:
			status = "the first of Config.Hosts must begin, here " + h.cfg.Hosts[0] + ": all hosts need the same list, in the same order"
		}
		if len(lacks) > 0 {
			status += "; not heard: " + strings.Join(lacks, ", ")
		}
		status += remedy
	}
	h.status.Store(&status)
}

// drive does what the host wants. What it must not forget is stored before anybody hears of it.
func (h *hosts) drive() error {
	for {
		out, some := h.host.Ready()
		if !some {
			return nil
		}
		if out.Save != nil && h.log != nil {
			if err := h.log.Save(out.Save, h.host.State); err != nil {
				return err
			}
		}
		for _, p := range out.Packets {
			if l := h.links[p.To]; l != nil {
				l.Cast(link.Message{Type: "raft", Body: p.Data})
			}
		}
		for _, a := range out.Answers {
			h.tell(&node.Answered{Number: a.Number, Answer: a.Answer})
		}
	}
}

// do runs a function in the goroutine, or drops it if too much waits.
func (h *hosts) do(f func()) {
	select {
	case h.inbox <- f:
	default:
	}
}

func (h *hosts) ask(number uint64, q *view.Request) { h.do(func() { h.host.Ask(number, q) }) }
func (h *hosts) packet(from string, data []byte)    { h.do(func() { h.host.Receive(from, data) }) }

func (h *hosts) lacks() string {
	if status := h.status.Load(); status != nil {
		return *status
	}
	return "it begins"
}

// leave has the host vote no longer. Without a leader for a lease it gives up: there are not enough others.
func (h *hosts) leave(ctx context.Context) {
	left := make(chan struct{})
	done := sync.OnceFunc(func() { close(left) })
	again := time.NewTicker(h.cfg.Lease / ticksPerLease)
	defer again.Stop()
	unled := 0
	for {
		h.do(func() {
			if unled++; h.host.Led() {
				unled = 0
			}
			if h.host.Leave() || unled > ticksPerLease {
				done()
			}
		})
		select {
		case <-again.C:
		case <-left:
			return
		case <-h.ended:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (h *hosts) close() {
	h.cancel()
	<-h.ended
	if h.log != nil {
		h.log.Close() //nolint:errcheck // all is stored
	}
}
