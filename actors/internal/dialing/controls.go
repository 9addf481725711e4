package dialing

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
)

// Controls asks the gate for the permits of the second MCP sessions that sessions open to settle a doubt.
type Controls struct {
	cfg  *contract.Config
	gate *admission.Gate
	all  map[*contract.ControlWanted]*admission.Control // that have not ended
}

// NewControls returns controls, of which there are none yet.
func NewControls(cfg *contract.Config, gate *admission.Gate) *Controls {
	return &Controls{cfg, gate, map[*contract.ControlWanted]*admission.Control{}}
}

// Wanted queues a control, or refuses it.
func (c *Controls) Wanted(msg *contract.ControlWanted, from *actor.PID) {
	control := c.gate.WantControl(&table.Of(msg.Of).Session, time.Now(), from)
	if control == nil {
		c.cfg.Post.Send(from, &contract.Allowed{Is: false})
		return
	}
	c.all[msg] = control
}

// Opened takes back the permit of a control.
func (c *Controls) Opened(msg *contract.ControlWanted) {
	if control := c.all[msg]; control != nil {
		c.gate.ControlOpened(control)
	}
}

// Ended notes that a control has ended.
func (c *Controls) Ended(msg *contract.ControlWanted) {
	if control := c.all[msg]; control != nil {
		delete(c.all, msg)
		c.gate.ControlEnded(control)
	}
}

// Count returns how many controls have not ended.
func (c *Controls) Count() int { return len(c.all) }
