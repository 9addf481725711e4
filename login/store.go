package login

import (
	"context"
	"time"
)

// Store keeps logins for all processes that share it, each under an id. What it keeps are secrets. Its methods may be called from
// any goroutine, and may block until ctx ends. See [Memory], [Folder] and [Shared].
type Store interface {
	// Load returns what is kept under an id, or nil.
	Load(ctx context.Context, id string) ([]byte, error)
	// Claim waits until nobody else has the login of an id claimed, and claims it. Only the holder of the claim may get tokens: a
	// refresh token that is used twice can end a login. If the process of the holder ends, so does the claim, at once or soon after.
	Claim(ctx context.Context, id string) (Claim, error)
}

// ClaimTime is how long a claim is valid after Claim has returned. Within this time, its holder finishes what it does under the claim,
// such as a token request. After that, another process may get the claim.
const ClaimTime = 30 * time.Second

// Claim is the right to change a login. Its methods are called from one goroutine.
type Claim interface {
	// Load returns what is kept, or nil.
	Load(ctx context.Context) ([]byte, error)
	// Save replaces what is kept. nil deletes it. It fails if the claim has been lost.
	Save(ctx context.Context, data []byte) error
	// Release gives the claim back. It is called once.
	Release()
}
