package mcpbridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/messages"
)

// ForKey returns the configuration of one key: the result of PerKey, if it is valid, or s if
// there is no PerKey. The result has no PerKey, and is read-only. The error for a result that
// is not valid is an [*Error] with the class [Invalid]. A panic of PerKey is returned as an
// error. ForKey blocks as long as PerKey does.
func (s *Server) ForKey(ctx context.Context, key messages.Key) (*Server, error) {
	if s.PerKey == nil {
		return s, nil
	}
	result, err := guard.Call(func() (Server, error) { return s.PerKey(ctx, key) })
	if err != nil {
		return nil, err
	}
	one, err := s.with(&result)
	if err != nil {
		return nil, &Error{Class: Invalid, Server: Present, Detail: "the configuration of the key: " + err.Error(), Err: err}
	}
	return one, nil
}

var (
	// dependent are the fields of a [Server] that may depend on the key.
	dependent = map[string]bool{
		"Command": true, "Args": true, "Env": true, "Dir": true, "URL": true, "Headers": true, "Setup": true, "InMemory": true,
		"Initialize": true, "InitializeVersion": true,
	}
	// comparedOtherwise are the fields that are not compared with DeepEqual.
	comparedOtherwise = map[string]bool{"PerKey": true, "PerKeyID": true, "ListClass": true, "Stderr": true, "Auth": true, "HTTPClient": true}
)

// with returns s with those fields of a result of PerKey that may depend on the key. The error
// names the first field of the result that is wrong.
func (s *Server) with(result *Server) (*Server, error) {
	all := *s
	from, to := reflect.ValueOf(result).Elem(), reflect.ValueOf(&all).Elem()
	for _, f := range reflect.VisibleFields(to.Type()) {
		field, old, now := f.Name, to.FieldByIndex(f.Index), from.FieldByIndex(f.Index)
		switch {
		case f.Anonymous: // its fields are visible
		case dependent[field]:
			old.Set(now)
		case field == "ProtocolVersion": // zero is that of the server
			all.ProtocolVersion = cmp.Or(result.ProtocolVersion, s.ProtocolVersion)
		case field == "ClientInfo": // likewise
			all.ClientInfo = cmp.Or(result.ClientInfo, s.ClientInfo)
		case !comparedOtherwise[field] && !now.IsZero() && !reflect.DeepEqual(now.Interface(), old.Interface()):
			return nil, fmt.Errorf("%s: is different from that of the server, but must not depend on the key", strings.ToLower(field[:1])+field[1:])
		}
	}
	_, func1 := s.Auth.(AuthenticatorFunc)
	_, func2 := result.Auth.(AuthenticatorFunc)
	switch {
	case (s.Command == "") != (result.Command == ""):
		return nil, errors.New("command: the key must have a command if and only if the server has one")
	case (s.URL == "") != (result.URL == ""):
		return nil, errors.New("url: the key must have a url if and only if the server has one")
	case result.HTTPClient != nil && s.HTTPClient != result.HTTPClient:
		return nil, errors.New("httpClient: is different from that of the server, but must not depend on the key")
	case result.Auth != nil && !sameAuth(s.Auth, result.Auth) && (!func1 || !func2):
		return nil, errors.New("auth: is different from that of the server, but must not depend on the key: it gets the key itself")
	}
	all.PerKey, all.PerKeyID = nil, ""
	all.Args, all.Setup = slices.Clone(all.Args), slices.Clone(all.Setup)
	all.Env, all.Headers = maps.Clone(all.Env), maps.Clone(all.Headers)
	return &all, all.Validate()
}
