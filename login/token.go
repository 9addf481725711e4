package login

import (
	"context"
	"crypto"
	"time"

	"golang.org/x/oauth2"
)

// patience bounds how long a token is waited for: while another process gets it, and then here.
const patience = 2 * time.Minute

// TokenSource returns l.
func (l *Login) TokenSource(context.Context) (oauth2.TokenSource, error) { return l, nil }

// Token returns a valid token, or nil if there is none. It refreshes one that has expired.
func (l *Login) Token() (*oauth2.Token, error) {
	token, _, err := l.BoundToken()
	return token, err
}

// BoundToken returns what Token returns, and the key that the token is bound to, or nil.
func (l *Login) BoundToken() (*oauth2.Token, crypto.Signer, error) {
	l.mu.Lock()
	last := l.last
	l.mu.Unlock()
	if last == nil || !last.Token.Valid() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		var err error
		if last, err = l.kept(ctx); err != nil || last == nil || last.Token == nil {
			return nil, nil, err
		}
	}
	key, err := last.signer()
	return last.Token, key, err
}

// kept returns the record of the store with a valid token, or nil.
func (l *Login) kept(ctx context.Context) (*Record, error) {
	r, err := l.Kept(ctx)
	if err != nil || r == nil || r.Token == nil { // nobody has logged in, or the login has ended
		return nil, err
	}
	if r.Token.Valid() {
		l.note(r)
		return r, nil
	}
	return l.renew(ctx, "", nil)
}
