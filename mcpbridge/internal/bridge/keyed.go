package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"net/url"
	"slices"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/messages"
)

// forKey returns the endpoint for a dial, which must be released: at itself, or the one that
// PerKey leads to. It may block.
func (at *endpoint) forKey(ctx context.Context, req mcpbridge.DialRequest) (*endpoint, error) {
	if at.PerKey == nil {
		return at, nil
	}
	config, err := at.configOf(ctx, req.Key)
	switch {
	case ctx.Err() != nil:
		return nil, mcpbridge.AsDialError(ctx.Err())
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
	return at.keyed.of(at, config, result), nil
}

// configOf calls PerKey. It gives up a function that ignores the end of its context.
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

// of returns the endpoint of a configuration, which is acquired.
func (k *keyed) of(base *endpoint, config *mcpbridge.Server, result string) *endpoint {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := k.endpoints[result]
	if at == nil {
		at = newEndpoint(*config)
		at.of = k
		at.result, at.client = result, base.client
		if len(config.Setup) > 0 && at.fingerprint != "" { // an attached session keeps what its set-up has done
			at.fingerprint = fingerprintOf(at.fingerprint + setupOf(config))
		}
		if isSameProgram(&base.Server, config) {
			at.dialect = base.dialect
		}
		if k.endpoints == nil {
			k.endpoints = map[string]*endpoint{}
		}
		k.endpoints[result] = at
	}
	at.users++
	return at
}

// acquire notes that a session uses an endpoint that its caller has acquired.
func (at *endpoint) acquire() {
	if at.of != nil {
		at.of.mu.Lock()
		defer at.of.mu.Unlock()
		at.users++
	}
}

// release gives up the use of an endpoint. With the last use, it is forgotten.
func (at *endpoint) release() {
	if at.of == nil {
		return
	}
	at.of.mu.Lock()
	at.users--
	if at.users == 0 && at.of.endpoints[at.result] == at {
		delete(at.of.endpoints, at.result)
	}
	at.of.mu.Unlock()
	at.releaseIdle()
}

// releaseIdle closes the idle connections of an endpoint that is forgotten.
func (at *endpoint) releaseIdle() {
	if at.of == nil {
		return
	}
	at.of.mu.Lock()
	forgotten := at.users == 0
	at.of.mu.Unlock()
	if forgotten {
		at.newest.Release()
	}
}

// fingerprintWith adds the result of PerKey to a fingerprint of credentials: another result may
// have other credentials.
func (at *endpoint) fingerprintWith(credentials uint64) uint64 {
	if at.of == nil || credentials == noCredentials {
		return credentials
	}
	return (credentials ^ maphash.String(seed, at.result)) | 1
}

// explainPerKey returns the error of a dial for an error of [mcpbridge.Server.ForKey]. It says
// nothing about the server.
func explainPerKey(err error, secrets []string) *mcpbridge.Error {
	var known *mcpbridge.Error
	var panicked *guard.Panic
	e := &mcpbridge.Error{Class: mcpbridge.Unavailable, Err: err}
	switch {
	case errors.As(err, &known) && known != nil:
		*e = *mcpbridge.AsDialError(known)
		e.Detail = redact.Clean(known.Detail, secrets...)
	case errors.As(err, &panicked):
		e.Class, e.Detail = mcpbridge.Internal, "no configuration for this key: "+redact.Clean(panicked.Brief(), secrets...)
	default:
		e.Detail = "no configuration for this key: " + redact.Describe(err, secrets...)
	}
	e.Server = mcpbridge.Present
	return e
}

// isSameProgram reports whether two configurations start the same command, or reach the same
// host.
func isSameProgram(one, two *mcpbridge.Server) bool {
	if one.URL == "" {
		return one.Command == two.Command && one.InMemory == two.InMemory
	}
	u, err1 := url.Parse(one.URL)
	v, err2 := url.Parse(two.URL)
	return err1 == nil && err2 == nil && u.Host == v.Host
}

// resultOf returns a text that is the same for two results of one function if and only if
// they are the same, without revealing them.
func resultOf(config *mcpbridge.Server) (string, error) {
	sum := sha256.New()
	add := func(parts ...string) {
		fmt.Fprintf(sum, "%d;", len(parts))
		for _, part := range parts {
			fmt.Fprintf(sum, "%d:%s", len(part), part)
		}
	}
	add(config.Command, config.Dir, config.URL, fmt.Sprintf("%p", config.InMemory))
	add(config.Args...)
	for _, values := range []map[string]string{config.Env, config.Headers} {
		var all []string
		for _, name := range slices.Sorted(maps.Keys(values)) {
			all = append(all, name, values[name])
		}
		add(all...)
	}
	for i, call := range config.Setup {
		if _, err := json.Marshal(call); err != nil {
			return "", fmt.Errorf("setup[%d]: %w", i, err)
		}
	}
	add(setupOf(config))
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// setupOf returns the set-up calls as JSON.
func setupOf(config *mcpbridge.Server) string {
	data, _ := json.Marshal(config.Setup) // resultOf has checked it
	return string(data)
}
