package actors

import "github.com/mcpactor/mcpactor/actors"

// What user code implements, and what it gets, is declared in the public package actors.
type (
	// Fault is [actors.Fault].
	Fault = actors.Fault
	// Strategy is [actors.Strategy].
	Strategy = actors.Strategy
	// Decider is [actors.Decider].
	Decider = actors.Decider
	// Decision is [actors.Decision].
	Decision = actors.Decision
	// Interceptor is [actors.Interceptor].
	Interceptor = actors.Interceptor
	// Runner is [actors.Runner].
	Runner = actors.Runner
)
