package quorum

// Packet is what a host sends to another one. It may be lost.
type Packet struct {
	To   string // the address
	Data []byte
}

type (
	// frame is the data of a packet.
	frame struct {
		Raft  []byte `json:"raft,omitempty"`
		Hello *hello `json:"hello,omitempty"`
		Left  uint64 `json:"left,omitempty"`  // a voter that is none any longer
		Since uint64 `json:"since,omitempty"` // what a hello has to say, so that the leader acts on it
		Led   bool   `json:"led,omitempty"`   // the answer to a hello: the sender has a leader
	}
	// hello says that a host is no voter, or asks whether it is none any longer.
	hello struct {
		ID     uint64 `json:"id"`
		Fresh  bool   `json:"fresh"`            // it has no log
		Since  uint64 `json:"since,omitempty"`  // the entry with the last change of the voters, as the leader has said
		Leaves uint64 `json:"leaves,omitempty"` // it does not want to be one: an entry at which it was
	}
)
