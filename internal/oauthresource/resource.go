// Package oauthresource finds the metadata of OAuth protected resources (RFC 9728) that the handlers of the SDK do not take:
// these want the metadata to name the URL of the MCP server, byte for byte.
package oauthresource

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcpactor/mcpactor/internal/visible"
)

// wellKnown is where the path of metadata begins.
const wellKnown = "/.well-known/oauth-protected-resource"

const (
	// maxMetadata bounds metadata, in bytes, as the SDK does.
	maxMetadata = 1 << 20
	// maxNamed bounds how many places of metadata a refusal may name: they may be of others.
	maxNamed = 4
	// findTimeout bounds the search for metadata.
	findTimeout = 15 * time.Second
)

// Metadata is the metadata of an MCP server, and where it is.
type Metadata struct {
	oauthex.ProtectedResourceMetadata
	URL string
}

// Authorize passes a request to an MCP server, and the response that refused it, to a handler of the SDK. If that fails because
// the metadata is not for the server, the error says so. It may block until ctx ends.
func Authorize(ctx context.Context, client *http.Client, handler auth.OAuthHandler, req *http.Request, resp *http.Response) error {
	resp = withBearer(resp) //nolint:bodyclose // the caller closes it
	found, others := Find(ctx, client, req.URL, resp.Header)
	if found != nil {
		req, resp = found.shown(req, resp) //nolint:bodyclose // the caller closes it
	}
	err := handler.Authorize(ctx, req, resp)
	if err != nil && found == nil && len(others) > 0 {
		return fmt.Errorf("the metadata of the server is for the resource %s, and not for its URL: %w", visible.Detail(strings.Join(others, ", ")), err)
	}
	return err
}

// withBearer returns a response in which the errors and the scopes of challenges of the scheme DPoP are in challenges of the scheme
// Bearer as well: the handlers of the SDK read no others (go-sdk#1139).
func withBearer(resp *http.Response) *http.Response {
	challenges, _ := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	shown := *resp
	shown.Header = resp.Header.Clone()
	for _, c := range challenges {
		for _, name := range []string{"error", "scope"} {
			if value := c.Params[name]; c.Scheme == "dpop" && value != "" && !strings.ContainsAny(value, `"\`) {
				shown.Header.Add("WWW-Authenticate", "Bearer "+name+`="`+value+`"`)
			}
		}
	}
	return &shown
}

// shown returns the refused request and its response as the handler has to see them: it takes the URL of the request for the
// resource, asks the first metadata that the response names, and sends the resource to the authorization server.
func (m *Metadata) shown(req *http.Request, resp *http.Response) (*http.Request, *http.Response) {
	asked, refused := req.WithContext(req.Context()), *resp
	asked.URL = &url.URL{Opaque: m.Resource} // whose String is the resource as it is
	refused.Header = resp.Header.Clone()
	if refused.Header == nil {
		refused.Header = http.Header{}
	}
	challenges := refused.Header.Values("WWW-Authenticate")
	refused.Header["Www-Authenticate"] = slices.Insert(slices.Clone(challenges), 0, `Bearer resource_metadata="`+m.URL+`"`)
	return asked, &refused
}

// Find returns the first metadata whose resource covers an MCP server, or nil. others are the resources of the metadata that
// do not. header is that of a refusal.
func Find(ctx context.Context, client *http.Client, server *url.URL, header http.Header) (found *Metadata, others []string) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	client = protected(client, server)
	for _, at := range candidates(server, header) {
		m, err := get[oauthex.ProtectedResourceMetadata](ctx, client, at)
		switch {
		case err != nil || m.Resource == "":
		case Covers(m.Resource, server):
			return &Metadata{*m, at.String()}, nil
		case !slices.Contains(others, m.Resource):
			others = append(others, m.Resource)
		}
	}
	return nil, others
}

// Covers reports whether the resource of metadata is that of an MCP server: it has the origin of the server and the beginning
// of its path, in whole segments. A slash at the end makes no difference. The resource may leave out the query of the server.
func Covers(resource string, server *url.URL) bool {
	r, err := url.Parse(resource)
	if err != nil || r.User != nil || strings.Contains(resource, "#") || origin(r) != origin(server) {
		return false
	}
	path, prefix := strings.TrimRight(server.EscapedPath(), "/")+"/", strings.TrimRight(r.EscapedPath(), "/")+"/"
	if r.RawQuery != "" {
		return path == prefix && r.RawQuery == server.RawQuery
	}
	return strings.HasPrefix(path, prefix)
}

// origin returns the scheme, the host and the port of a URL.
func origin(u *url.URL) string {
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// candidates returns where the metadata of a server may be: where its refusal says, at the server's path, and at the root.
func candidates(server *url.URL, header http.Header) (all []*url.URL) {
	challenges, _ := oauthex.ParseWWWAuthenticate(header.Values("WWW-Authenticate"))
	for _, c := range challenges {
		named := c.Params["resource_metadata"]
		if at, err := url.Parse(named); err == nil && named != "" && len(all) < maxNamed {
			all = append(all, at)
		}
	}
	path := server.EscapedPath()
	for _, rest := range []string{strings.TrimSuffix(path, "/"), path, ""} {
		for _, query := range []string{server.RawQuery, ""} {
			if at, err := url.Parse(wellKnown + rest); err == nil {
				at.Scheme, at.Host, at.RawQuery = server.Scheme, server.Host, query
				all = append(all, at)
			}
		}
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(at *url.URL) bool {
		text := at.String()
		again := seen[text] || strings.ContainsAny(text, `"\`)
		seen[text] = true
		return again || !mayAsk(at, server)
	})
}

// statusError is the error of an answer that is no metadata.
type statusError struct {
	code   int
	status string
}

func (e statusError) Error() string { return e.status }

// get returns the metadata at a URL.
func get[T any](ctx context.Context, client *http.Client, at *url.URL) (*T, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Close = true // no connection stays open for one request
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, statusError{resp.StatusCode, resp.Status}
	}
	var metadata T
	return &metadata, json.NewDecoder(io.LimitReader(resp.Body, maxMetadata)).Decode(&metadata)
}
