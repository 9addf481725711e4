package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"net/url"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/internal/identity"
	"github.com/mcpactor/mcpactor/internal/introduction"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/messages"
)

// forKey returns the endpoint for a dial: at itself, or the derived one of its key. The caller releases it.
// It may block.
func (at *endpoint) forKey(ctx context.Context, req dial.Request) (*endpoint, error) {
	if at.PerKey == nil {
		return at, nil
	}
	config, err := at.configOf(introduction.With(ctx, req.Introduction), req.Key)
	switch {
	case ctx.Err() != nil:
		return nil, dial.AsError(ctx.Err())
	case err != nil:
		return nil, explainPerKey(err, at.transport().Secrets())
	}
	result, err := resultOf(config)
	if err != nil {
		return nil, &mcpbridge.Error{Class: mcpbridge.Invalid, Server: mcpbridge.Present, Detail: "the configuration of the key: " + redact.Describe(err, redact.OfServer(config)...)}
	}
	if req.Resolved != nil {
		if err := req.Resolved(ctx, config); err != nil {
			return nil, err
		}
	}
	return at.derive(config, result), nil
}

// configOf calls PerKey. It does not wait for a function that ignores the end of its context.
func (at *endpoint) configOf(ctx context.Context, key messages.Key) (*mcpbridge.Server, error) {
	type outcome struct {
		config *mcpbridge.Server
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		config, err := at.ForKey(ctx, key)
		done <- outcome{config, err}
	}()
	select {
	case o := <-done:
		return o.config, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// derive returns the endpoint for a result of PerKey, and notes that a dial uses it.
func (at *endpoint) derive(config *mcpbridge.Server, result string) *endpoint {
	at.derived.mu.Lock()
	defer at.derived.mu.Unlock()
	derived := at.derived.endpoints[result]
	if derived == nil {
		derived = newEndpoint(*config)
		derived.parent, derived.result, derived.client = at, result, at.client
		if len(config.Setup) > 0 && derived.fingerprint != "" { // a session keeps what its set-up has done: it is resumed only with the same set-up
			derived.fingerprint = fingerprintOf(derived.fingerprint + setupOf(config))
		}
		if isSameProgram(&at.Server, config) {
			derived.dialect = at.dialect
		}
		if at.derived.endpoints == nil {
			at.derived.endpoints = map[string]*endpoint{}
		}
		at.derived.endpoints[result] = derived
	}
	derived.users++
	return derived
}

// acquire notes that a session uses an endpoint, in addition to its dial.
func (at *endpoint) acquire() {
	if at.parent != nil {
		at.parent.derived.mu.Lock()
		defer at.parent.derived.mu.Unlock()
		at.users++
	}
}

// release notes that a dial or a session no longer uses an endpoint. A derived endpoint without users is forgotten.
func (at *endpoint) release() {
	if at.parent == nil {
		return
	}
	all := &at.parent.derived
	all.mu.Lock()
	at.users--
	if at.users == 0 && all.endpoints[at.result] == at {
		delete(all.endpoints, at.result)
	}
	all.mu.Unlock()
	at.releaseIdle()
}

// releaseIdle closes the idle connections of a derived endpoint without users.
func (at *endpoint) releaseIdle() {
	if at.parent == nil {
		return
	}
	at.parent.derived.mu.Lock()
	unused := at.users == 0
	at.parent.derived.mu.Unlock()
	if unused {
		at.newest.Release()
	}
}

// fingerprintWith adds the result of PerKey to a fingerprint of credentials, because the result may contain
// credentials, too.
func (at *endpoint) fingerprintWith(credentials uint64) uint64 {
	if at.parent == nil || credentials == noCredentials {
		return credentials
	}
	return (credentials ^ maphash.String(seed, at.result)) | 1
}

// explainPerKey returns the error of a dial for an error of [mcpbridge.Server.ForKey]. Such an error shows nothing
// about the server, which counts as present.
func explainPerKey(err error, secrets []string) *mcpbridge.Error {
	var known *mcpbridge.Error
	var panicked *guard.Panic
	e := &mcpbridge.Error{Class: mcpbridge.Unavailable, Err: err}
	switch {
	case errors.As(err, &known) && known != nil:
		*e = *dial.AsError(known)
		e.Detail = redact.Clean(known.Detail, secrets...)
	case errors.As(err, &panicked):
		e.Class, e.Detail = mcpbridge.Internal, "no configuration for this key: "+redact.Clean(panicked.Brief(), secrets...)
	default:
		e.Detail = "no configuration for this key: " + redact.Describe(err, secrets...)
	}
	e.Server = mcpbridge.Present
	return e
}

// isSameProgram reports whether two configurations start the same command, or reach the same host.
func isSameProgram(one, two *mcpbridge.Server) bool {
	if one.URL == "" {
		return one.Command == two.Command && one.InMemory == two.InMemory
	}
	u, err1 := url.Parse(one.URL)
	v, err2 := url.Parse(two.URL)
	return err1 == nil && err2 == nil && u.Host == v.Host
}

// resultOf returns a hash of those fields of a result of PerKey that may depend on the key.
func resultOf(config *mcpbridge.Server) (string, error) {
	sum := identity.NewSum()
	sum.Add(config.Command, config.Dir, config.URL, config.ProtocolVersion, config.InitializeVersion, identity.Of(config.InMemory))
	info, err := json.Marshal(config.ClientInfo)
	if err != nil {
		return "", fmt.Errorf("clientInfo: %w", err)
	}
	further, err := json.Marshal(config.Initialize)
	if err != nil {
		return "", fmt.Errorf("initialize: %w", err)
	}
	sum.Add(string(info), string(further))
	sum.Add(config.Args...)
	sum.AddMap(config.Env)
	sum.AddMap(config.Headers)
	for i, call := range config.Setup {
		if _, err := json.Marshal(call); err != nil {
			return "", fmt.Errorf("setup[%d]: %w", i, err)
		}
	}
	sum.Add(setupOf(config))
	return sum.String(), nil
}

// setupOf returns the set-up calls as JSON.
func setupOf(config *mcpbridge.Server) string {
	data, _ := json.Marshal(config.Setup) // resultOf has checked it
	return string(data)
}
