package resume

import (
	"fmt"
	"time"

	"github.com/mcpactor/mcpactor/internal/entry"
)

// lockWait is how long [Open] waits for each of its two locks: the shared lock of
// inspect, and the exclusive lock of the store.
const lockWait = time.Second

// Config is the configuration of a [File]. Its zero value is useful.
type Config struct {
	// MaxAge is how long a record is kept after it was last saved. [Open] deletes older
	// records, so that keys that are no longer used do not accumulate. Raise it if
	// servers keep sessions for longer. Defaults to 30 days; -1 deletes none.
	MaxAge time.Duration

	now  func() time.Time
	wait time.Duration
}

// withDefaults returns a copy with all fields set.
func (c Config) withDefaults() Config {
	if c.MaxAge == 0 {
		c.MaxAge = entry.DefaultMaxAge
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.wait == 0 {
		c.wait = lockWait
	}
	return c
}

// validate reports the first field that is wrong, after withDefaults.
func (c Config) validate() error {
	if c.MaxAge < entry.Forever {
		return fmt.Errorf("maxAge: %v is negative: -1 keeps all records", c.MaxAge)
	}
	return nil
}
