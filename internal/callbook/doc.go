// Package callbook has one record for each call that is found again: a durable one, and one that waits, or has waited, for an
// answer. Whoever asks for the call again, in this process or in another one, learns from the record what became of it.
//
//	    ┌────────────────────────▶ failed
//	    │                             ▲
//	proposed ──answer──▶ allowed ─────┘
//	                      │   ▲  certainly not run
//	                      ▼   │
//	                      sent ───────────────▶ done
//	                      │  └──▶ task ─────────▲▲
//	                      ▼        │            ││
//	                   unknown ◀───┘            ││
//	                      │ └───late result─────┘│
//	                      ▼                      │
//	                    asking ──▶ allowed, done ┘, unknown
//
// From sent, a call that has certainly not run becomes failed if somebody was asked about it: whoever was told so may have proposed it
// anew.
//
// A state is changed by compare-and-set, and what a state permits is done after its record was written. So a call is sent once,
// unless it is known that it has not run, or the caller has said that it may run twice.
//
// [Record] decides, and does nothing. [Book] acts.
package callbook
