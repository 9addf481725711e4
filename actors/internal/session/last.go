package session

// lastSession is what is known of the last MCP session of a key. The next dial begins with it.
type lastSession struct {
	generation uint64
	floor      uint64   // the next generation is higher, unless the store has a record to resume
	stateless  bool     // the MCP session kept nothing on the server
	saved      bool     // the store has the MCP session
	noResume   bool     // the record in the store is of an MCP session that is being closed
	leftovers  []string // the ids of MCP sessions that could not be closed, and are not resumed
}

// openedLate notes the MCP session of a dial that came too late, if there is one.
func (l *lastSession) openedLate(msg *dialed) {
	l.generation = max(l.generation, msg.generation)
	if msg.conn != nil {
		l.saved = msg.saved
	}
}
