package registry

// From the registry's goroutines and timers to itself.
type (
	// backoffDue says that a backoff is over.
	backoffDue struct{ of *registration }
	// idleDue says that the idle timeout of a session may be over.
	idleDue struct{}
	// closeDue says that the time of a close command is over.
	closeDue struct{ of *closeCommand }
)
