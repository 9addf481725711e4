package resume

import "errors"

// ErrGarbage is a record that cannot be read. The others are not affected.
var ErrGarbage = errors.New("the record is garbage: delete it, or save over it")
