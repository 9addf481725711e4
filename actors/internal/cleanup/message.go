package cleanup

import (
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// From the goroutines and the timer of the actor to itself.
type (
	// recordLoaded brings the record of the store, or nil.
	recordLoaded struct{ record *mcpbridge.Record }
	// leftoversClosed brings the leftovers that could not be closed, and how many were.
	leftoversClosed struct {
		leftovers []contract.Leftover
		count     int
	}
	// timerFired says that the actor has waited too long for its grant.
	timerFired struct{}
)
