package cluster

import (
	"context"
	"sync"

	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/cluster/internal/node"
	"github.com/mcpactor/mcpactor/cluster/internal/view"
)

// witness keeps the view: etcd does, or the hosts of the cluster, or the process.
type witness interface {
	// ask has a request done, and does not block. The answer, if there is one, is told to the node.
	ask(number uint64, q *view.Request)
	// packet takes what the host at an address has sent.
	packet(from string, data []byte)
	// lacks says what the witness waits for, or returns "".
	lacks() string
	// leave gives up the vote of this member, as long as ctx allows it.
	leave(ctx context.Context)
	// close ends the witness, which answers no longer.
	close()
}

// newWitness returns the witness of a member.
func (c *Config) newWitness(n *network, logger zerolog.Logger, tell func(any)) (witness, error) {
	switch {
	case len(c.Hosts) > 0:
		return newHosts(c, n, logger, tell)
	case c.InProcess != nil:
		return &shared{c.InProcess, c.Name, tell}, nil
	default:
		return newEtcd(c, tell)
	}
}

// InProcess keeps the list of the members of one process, for tests. They still talk to each other over
// loopback.
type InProcess struct {
	mu        sync.Mutex
	registers map[string]*view.Register // by the name of the cluster
}

// NewInProcess returns one without members.
func NewInProcess() *InProcess { return &InProcess{registers: map[string]*view.Register{}} }

// shared is the use of a witness by one member.
type shared struct {
	of      *InProcess
	cluster string
	tell    func(any)
}

func (s *shared) ask(number uint64, q *view.Request) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	r := s.of.registers[s.cluster]
	if r == nil {
		r = new(view.Register)
		s.of.registers[s.cluster] = r
	}
	s.tell(&node.Answered{Number: number, Answer: r.Do(q)})
}

func (*shared) packet(string, []byte) {}
func (*shared) lacks() string         { return "" }
func (*shared) leave(context.Context) {}
func (*shared) close()                {}
