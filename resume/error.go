package resume

import (
	"errors"

	"github.com/mcpactor/mcpactor/internal/entry"
)

// The errors of [Open] and of the methods of [File] that a program may handle. The shared
// stores return ErrClosed and ErrGarbage, too. Use [errors.Is].
var (
	// ErrClosed: the store was closed.
	ErrClosed = entry.ErrClosed
	// ErrLocked: the file is open, most likely in another process.
	ErrLocked = errors.New("the file is in use: close the store there, or name another file")
	// ErrDamaged: the file is a store of sessions, and cannot be read.
	ErrDamaged = errors.New("the file is damaged: delete it to start with an empty store")
	// ErrGarbage: one record cannot be read. The others are not affected.
	ErrGarbage = entry.ErrGarbage
)

// The errors of [Open] that only a change of the path or of the file can mend.
var (
	// errMode: others than its owner may read or write the file.
	errMode = errors.New("the file is not private")
	// errForeign: the file is not a store of sessions. Open has not changed it.
	errForeign = errors.New("the file is not a store of sessions: name another one")
)
