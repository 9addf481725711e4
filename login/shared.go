package login

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/internal/storelimit"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// leastSecret is how many bytes a secret has at least.
const leastSecret = 32

var (
	errSealed = errors.New("the login that is kept cannot be read: it was written with another secret, or somebody has changed it")
	errLost   = errors.New("the claim of the login was lost: another process has taken it over")
)

// Shared returns a store in which processes on several machines share logins, such as the members of a cluster. The stores of the
// modules resume/redis and cluster/etcdstore are for several machines, and those of package resume for one process. Sessions may be
// in the same store. How long that keeps its records is how long a login is kept that nobody refreshes.
//
// Logins are encrypted (AES-256-GCM) with a key that is made of a secret of 32 bytes or more, which all processes have, and which must
// be random. A login that was written with another secret is an error, and is not overwritten.
//
// If a process dies that has a login claimed, another one can claim it 45 seconds after it has first seen that claim. Clocks may differ.
func Shared(store mcpbridge.Swapper, secret []byte) (Store, error) {
	if len(secret) < leastSecret {
		return nil, fmt.Errorf("login: the secret has %d bytes: use %d random ones or more", len(secret), leastSecret)
	}
	if store == nil {
		return nil, errors.New("login: the store is nil")
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "mcpactor login", 32)
	if err != nil {
		return nil, fmt.Errorf("login: the secret: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("login: the secret: %w", err)
	}
	sealer, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("login: the secret: %w", err)
	}
	limited, _ := storelimit.New(store).(mcpbridge.Swapper) // it is one, as the store is
	return &shared{store: limited, sealer: sealer, watches: map[string]watch{}}, nil
}

// shared is the store of [Shared].
type shared struct {
	store  mcpbridge.Swapper
	sealer cipher.AEAD

	mu      sync.Mutex
	watches map[string]watch // by the ids of logins that others have claimed
}

// sharedRecord is what the record of a login has. It stays when the login is deleted: its version tells a claim that has been lost.
type sharedRecord struct {
	Claim   string // the ID of the claim, or empty
	Data    []byte // empty if there is no login
	version uint64
}

// load returns what is kept under an id.
func (s *shared) load(ctx context.Context, id string) (at sharedRecord, err error) {
	record, err := s.store.Load(ctx, recordkey.Login(id))
	if err != nil || record == nil {
		return sharedRecord{}, err
	}
	text, err := s.sealer.Open(nil, nil, record.Login, []byte(id))
	if err != nil || json.Unmarshal(text, &at) != nil {
		return sharedRecord{}, errSealed
	}
	at.version = record.Version
	return at, nil
}

// swap replaces what is kept, if it is of the version that the new one says.
func (s *shared) swap(ctx context.Context, id string, to sharedRecord) (swapped bool, err error) {
	text, err := json.Marshal(to)
	if err != nil {
		return false, err
	}
	record := &mcpbridge.Record{Version: to.version + 1, Login: s.sealer.Seal(nil, nil, text, []byte(id))}
	return s.store.Swap(ctx, recordkey.Login(id), to.version, record)
}

// Load returns what is kept under an id, or nil.
func (s *shared) Load(ctx context.Context, id string) ([]byte, error) {
	at, err := s.load(ctx, id)
	return at.Data, err
}

// Claim writes the claim beside the login once there is no other.
func (s *shared) Claim(ctx context.Context, id string) (Claim, error) {
	c := &sharedClaim{store: s, id: id, own: rand.Text()}
	var failed error // of the swap before: the claim may be there all the same
	for tried := false; ; {
		at, err := s.load(ctx, id)
		if err != nil {
			if tried {
				c.Release()
			}
			return nil, errors.Join(failed, err)
		}
		switch step, wait := s.see(id, at.Claim, c.own); {
		case step == have:
			c.data = at.Data
			return c, nil
		case failed != nil:
			return nil, failed
		case step == take:
			at.Claim, tried = c.own, true
			_, failed = s.swap(context.WithoutCancel(ctx), id, at) // otherwise the claim could stay although nobody waits for it
		default:
			select {
			case <-time.After(wait/2 + mathrand.N(wait/2)):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
}

// see tells the watch of a login which claim there is.
func (s *shared) see(id, claim, own string) (step claimStep, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.watches[id]
	step, wait = w.see(claim, own, time.Now())
	if s.watches[id] = w; claim == "" || claim == own {
		delete(s.watches, id)
	}
	return step, wait
}

// sharedClaim is a claim in a shared store.
type sharedClaim struct {
	store   *shared
	id, own string
	data    []byte // what was kept, or is saved since
}

func (c *sharedClaim) Load(ctx context.Context) ([]byte, error) {
	return bytes.Clone(c.data), ctx.Err()
}

// saveTime is how long Save tries to save: a token that is not saved is lost.
const saveTime = 10 * time.Second

func (c *sharedClaim) Save(ctx context.Context, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, saveTime)
	defer cancel()
	for wait := leastWait; ; wait *= 2 {
		saved, err := c.trySave(ctx, data)
		if saved {
			c.data = bytes.Clone(data)
		}
		if saved || errors.Is(err, errLost) || errors.Is(err, errSealed) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// trySave saves data once. An error leaves open whether it was saved.
func (c *sharedClaim) trySave(ctx context.Context, data []byte) (saved bool, err error) {
	at, err := c.store.load(ctx, c.id)
	switch {
	case err != nil:
		return false, err
	case at.Claim != c.own:
		return false, errLost
	case bytes.Equal(at.Data, data): // an attempt that has failed has saved it
		return true, nil
	}
	at.Data = data
	return c.store.swap(ctx, c.id, at)
}

// Release gives the claim back. If the store fails, others take it over in the end.
func (c *sharedClaim) Release() {
	ctx := context.Background() // the store has a timeout
	at, err := c.store.load(ctx, c.id)
	if err == nil && at.Claim == c.own {
		at.Claim = ""
		c.store.swap(ctx, c.id, at) //nolint:errcheck // see above
	}
}
