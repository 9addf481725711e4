package resume

import "errors"

// What [Open] and the methods of [File] fail with, besides the errors of the
// context and of the system. Use [errors.Is].
var (
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")
	// ErrLocked: the file is open, most likely in another process.
	ErrLocked = errors.New("the file is in use: close the store there, or name another file")
	// ErrMode: others than its owner may read or write the file.
	ErrMode = errors.New("the file is not private")
	// ErrForeign: the file is no store of sessions. It was not changed.
	ErrForeign = errors.New("the file is not a store of sessions: name another one")
	// ErrDamaged: the file was one of ours, and cannot be read any more.
	ErrDamaged = errors.New("the file is damaged: delete it, and sessions are opened anew")
	// ErrGarbage: one record cannot be read. The others are not affected.
	ErrGarbage = errors.New("the record is garbage: delete it, or save over it")
)
