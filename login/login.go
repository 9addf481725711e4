package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/mcpactor/mcpactor/internal/oauthresource"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// Config says how a login gets its tokens, and where it keeps them.
type Config struct {
	// ID identifies the login in Store: use, for example, the URL of the MCP server and the user. Logins with the same ID have the same
	// tokens, and should have the same configuration. ID may be empty without a Store.
	ID string
	// Store keeps the login for all processes and members of a cluster. Defaults to one of this login alone, in memory.
	Store Store
	// Grant gets tokens without a person. nil is for a person who logs in elsewhere: see [Login.Keep].
	Grant Grant
	// Scopes are asked for in place of those that the MCP server names.
	Scopes []string
	// Remedy says what a person has to do when there is no token, in words.
	Remedy string
	// HTTPClient sends requests to authorization servers. Defaults to one with a timeout of 30 seconds. No token request follows a
	// redirect, whatever the CheckRedirect of the client says.
	HTTPClient *http.Client
}

// Login is the login at one MCP server. It is a handler for [mcpbridge.OAuth]. Its tokens are in its Store: one of the processes that
// share the store refreshes a token, or gets one by its Grant, for all of them. A token that the MCP server asks to be bound to a key is
// bound to one of the login (DPoP, RFC 9449). Its methods may be called from any goroutine.
type Login struct {
	cfg   Config
	alone bool // nobody shares the store

	mu   sync.Mutex
	last *Record // the last one of the store with a token; nil before
}

var (
	_ auth.OAuthHandler          = (*Login)(nil)
	_ mcpbridge.BoundTokenSource = (*Login)(nil)
)

// New returns a login. Errors name the field.
func New(cfg Config) (*Login, error) {
	l := &Login{cfg: cfg, alone: cfg.Store == nil}
	if cfg.Store != nil && cfg.ID == "" {
		return nil, errors.New("login: ID is empty, and Store is not")
	}
	if cfg.Grant != nil {
		if err := cfg.Grant.validate(); err != nil {
			return nil, fmt.Errorf("login: Grant: %w", err)
		}
	}
	if l.alone {
		l.cfg.Store = new(Memory)
	}
	if cfg.HTTPClient == nil {
		l.cfg.HTTPClient = oauthresource.Web
	}
	return l, nil
}

// Equal reports whether another login has the same configuration, so that a server keeps its sessions when it is loaded again with
// that. Logins with functions are equal to themselves only.
func (l *Login) Equal(other auth.OAuthHandler) bool {
	o, is := other.(*Login)
	if !is || l == o {
		return is
	}
	one, two := l.cfg, o.cfg
	sameStore := l.alone && o.alone
	if l.alone == o.alone && reflect.ValueOf(one.Store).Comparable() && reflect.ValueOf(two.Store).Comparable() {
		sameStore = sameStore || one.Store == two.Store
	}
	if one.HTTPClient != two.HTTPClient || !sameStore {
		return false
	}
	one.HTTPClient, one.Store, two.HTTPClient, two.Store = nil, nil, nil, nil // they may be in use
	return reflect.DeepEqual(one, two)
}

// note makes a record the last one.
func (l *Login) note(r *Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = r
}

// Keep keeps the tokens of a person that has logged in. Errors name the field of the record.
func (l *Login) Keep(ctx context.Context, r *Record) error {
	if err := r.validate(); err != nil {
		return fmt.Errorf("login: Record: %w", err)
	}
	claim, err := l.cfg.Store.Claim(ctx, l.cfg.ID)
	if err != nil {
		return err
	}
	defer claim.Release()
	own := *r
	own.signs, _ = r.signer() // a key that cannot be read is an error when it is used
	return l.save(ctx, claim, &own)
}

// Kept returns what is kept, or nil.
func (l *Login) Kept(ctx context.Context) (*Record, error) {
	return l.decoded(l.cfg.Store.Load(ctx, l.cfg.ID))
}

// decoded returns the record in what a store has returned.
func (l *Login) decoded(data []byte, err error) (*Record, error) {
	if err != nil {
		return nil, fmt.Errorf("the store of logins: %w", err)
	}
	r, err := decode(data)
	if err != nil && l.cfg.Remedy != "" {
		err = &mcpbridge.Error{Class: mcpbridge.Unauthorized, Detail: err.Error(), Remedy: l.cfg.Remedy}
	}
	return r, err
}

// Forget forgets the login, and reports whether there was one. The authorization server is not told.
func (l *Login) Forget(ctx context.Context) (found bool, err error) {
	claim, err := l.cfg.Store.Claim(ctx, l.cfg.ID) // a process that refreshes the token would write it again
	if err != nil {
		return false, err
	}
	defer claim.Release()
	l.note(nil)
	data, err := claim.Load(ctx)
	if err != nil {
		return false, err
	}
	return data != nil, claim.Save(ctx, nil)
}

func (l *Login) save(ctx context.Context, claim Claim, r *Record) error {
	if r.Token != nil && strings.ContainsFunc(r.Token.AccessToken, unicode.IsControl) { // no request could carry it
		return errors.New("the authorization server gives a token with a control character, such as the end of a line")
	}
	data, err := json.Marshal(r)
	if err == nil {
		err = claim.Save(context.WithoutCancel(ctx), data) // a token that is not kept is lost
	}
	if err != nil {
		return fmt.Errorf("the login cannot be kept: %w", err)
	}
	if r.Token == nil {
		r = nil
	}
	l.note(r)
	return nil
}
