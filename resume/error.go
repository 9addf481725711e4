package resume

import (
	"errors"

	"github.com/mcpactor/mcpactor/internal/entry"
)

// The errors of [Open] and of the methods of [File], besides those of the context and
// of the system. The shared stores return ErrClosed and ErrGarbage, too. Use [errors.Is].
var (
	// ErrClosed: the store was closed.
	ErrClosed = entry.ErrClosed
	// ErrLocked: the file is open, most likely in another process.
	ErrLocked = errors.New("the file is in use: close the store there, or name another file")
	// ErrMode: others than its owner may read or write the file.
	ErrMode = errors.New("the file is not private")
	// ErrForeign: the file is not a store of sessions. Open has not changed it.
	ErrForeign = errors.New("the file is not a store of sessions: name another one")
	// ErrDamaged: the file is a store of sessions, and cannot be read.
	ErrDamaged = errors.New("the file is damaged: delete it to start with an empty store")
	// ErrGarbage: one record cannot be read. The others are not affected.
	ErrGarbage = entry.ErrGarbage
)
