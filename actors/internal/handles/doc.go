// Package handles decides about the handles that the tools of servers mint: who holds each, whose turn it is to mint the next one, and what is
// released when. A [Book] is told what happens, and says what is to be done. It calls no tool, and stores nothing.
//
//	Ask ──▶ in the line ──Grant──▶ under way ──Answered──▶ held ──nobody holds it──▶ releasing ──▶ gone, from the book
//	             │                    │   │                 │ ▲                          │
//	             └──── Withdraw       │   └─Failed─▶ lost   │ └─── Begins ──── left ◀────┘
//	                                  └──▶ it has minted    └──▶ lost with its session, or minted anew
//	                                       nothing
//
// A Book belongs to one registry, and is not safe for concurrent use.
package handles
