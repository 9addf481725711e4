package oauthresource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/stretchr/testify/require"
)

// resources are the resources that metadata names for the URL of an MCP server, and whether it counts.
//
// RFC 9728, section 3.3, wants the resource to be "identical" to the identifier that the address of the metadata was made of, or,
// after a challenge, "identical to the URL that the client used"; otherwise the metadata "MUST NOT be used". Section 7.3 gives
// the reason: a server could name the resource of another. Hosted servers name less than their URLs. The draft
// draft-mcguinness-oauth-rfc9728bis asks for the same origin, and a path that the path of the URL begins with. The clients of the
// TypeScript and Python SDKs check that.
var resources = []struct {
	server, resource string
	counts           bool
	why              string
}{
	{"https://a.test/mcp", "https://a.test/mcp", true, "RFC 9728, section 3.3: identical"},
	{"https://a.test/mcp?x=1", "https://a.test/mcp?x=1", true, "identical, with a query"},
	{"https://a.test", "https://a.test", true, "identical, without a path"},

	{"https://a.test/mcp", "https://a.test", true, "Entra (conformance#488), and vercel/ai#13988: the origin, which is sent without a slash"},
	{"https://a.test/mcp", "https://a.test/", true, "python-sdk#1264: the origin with the slash that Pydantic adds"},
	{"https://a.test/", "https://a.test", true, "python-sdk#1265"},
	{"https://a.test/mcp/", "https://a.test/mcp", true, "GitHub Copilot (vscode#259251)"},
	{"https://a.test/mcp", "https://a.test/mcp/", true, "the same the other way round"},
	{"https://a.test/mcp?project_ref=a&read_only=true", "https://a.test/mcp", true, "Supabase (supabase/mcp#338), whose authorization server refuses the query"},
	{"https://a.test/mcp?oauth=initialize", "https://a.test/mcp", true, "AWS (rust-sdk#1177)"},
	{"https://a.test/mcp/oauth", "https://a.test/mcp", true, "Exa (exa-mcp-server#387): the parent path"},
	{"https://a.test/figma/mcp", "https://a.test/figma", true, "adcp-client#1666"},
	{"https://a.test/mcp", "HTTPS://A.test:443/mcp", true, "RFC 3986, section 6.2: the same origin"},

	{"https://a.test/mcp", "http://a.test/mcp", false, "e2a#635, mesh-mcp#20: a proxy ends TLS, and the server does not know that"},
	{"https://a.test/mcp", "https://b.test/mcp", false, "RFC 9728, section 7.3: another server"},
	{"https://a.test/mcp", "https://a.test.b.test/mcp", false, "another server whose name begins in the same way"},
	{"https://a.test/mcp", "https://a.test@b.test/mcp", false, "another server, with a user"},
	{"https://a.test/mcp", "https://user@a.test/mcp", false, "a user is no part of an identifier"},
	{"https://a.test/mcp", "https://a.test:8443/mcp", false, "another port"},
	{"https://a.test/api-evil/mcp", "https://a.test/api", false, "mcp-use#2254: no whole segment"},
	{"https://a.test/mcp", "https://a.test/other", false, "a sibling"},
	{"https://a.test/mcp", "https://a.test/mcp/v2", false, "a child"},
	{"https://a.test/mcp", "https://a.test/other/../mcp", false, "a path that is written in another way"},
	{"https://a.test/mcp", "https://a.test/mcp?tenant=b", false, "another query"},
	{"https://a.test/mcp?tenant=a", "https://a.test/mcp?tenant=b", false, "another query"},
	{"https://a.test/mcp/v2?tenant=a", "https://a.test/mcp?tenant=a", false, "a query of another path"},
	{"https://a.test/mcp", "https://a.test/mcp#top", false, "RFC 8707, section 2: MUST NOT include a fragment"},
	{"https://a.test/mcp", "https://a.test/mcp#", false, "the same, empty"},
	{"https://a.test/mcp", "urn:example:mcp", false, "typescript-sdk#2092: no URL"},
	{"https://a.test/mcp", "api://a.test/mcp", false, "another scheme"},
	{"https://a.test/mcp", "/mcp", false, "no origin"},
	{"https://a.test/mcp", "https://a.test/%zz", false, "no URL"},
}

// Metadata that count lead to their own authorization server, which gets the resource byte for byte. Others lead nowhere, and the
// error says which resource they name.
func TestMetadataCountIfTheyNameTheOriginOfTheServerAndTheBeginningOfItsPath(t *testing.T) {
	for _, c := range resources {
		for _, challenged := range []bool{true, false} {
			t.Run(fmt.Sprint(c.server, " ", c.resource, " ", challenged), func(t *testing.T) {
				address, err := login(t, c.server, c.resource, challenged)
				if !c.counts {
					require.Empty(t, address, c.why)
					require.ErrorContains(t, err, "for the resource "+c.resource)
					return
				}
				require.ErrorIs(t, err, errNobody)
				require.Equal(t, "authorize.test", address.Host, c.why)
				require.Equal(t, c.resource, address.Query().Get("resource"), c.why)
				require.Equal(t, "read", address.Query().Get("scope"), "the scopes of the challenge, or of the metadata")
			})
		}
	}
}

// errNobody is the error of a person who is not there.
var errNobody = errors.New("nobody logs in")

// login logs in at a server whose metadata names a resource, and returns the address that the person is sent to, or nil.
func login(t *testing.T, server, resource string, challenged bool) (sent *url.URL, err error) {
	at, err := url.Parse(server)
	require.NoError(t, err)
	metadataPath := wellKnown + strings.TrimSuffix(at.Path, "/")
	header := http.Header{}
	if challenged {
		metadataPath = "/metadata"
		header.Set("WWW-Authenticate", `Bearer error="invalid_token", resource_metadata="https://a.test/metadata", scope="read"`)
	}
	return refused(t, server, resource, metadataPath, &http.Response{StatusCode: http.StatusUnauthorized, Header: header, Body: http.NoBody})
}

// refused logs in after a refusal, with the metadata at a path.
func refused(t *testing.T, server, resource, metadataPath string, resp *http.Response) (sent *url.URL, err error) {
	client := &http.Client{Transport: roundTripper(func(r *http.Request) string {
		switch {
		case r.URL.Host == "a.test" && r.URL.Path == metadataPath:
			return fmt.Sprintf(`{"resource":%q,"authorization_servers":["https://as.test"],"scopes_supported":["read"]}`, resource)
		case r.URL.Host == "as.test" && r.URL.Path == "/.well-known/oauth-authorization-server":
			return `{"issuer":"https://as.test","authorization_endpoint":"https://authorize.test/","token_endpoint":"https://as.test/token","code_challenge_methods_supported":["S256"]}`
		}
		return ""
	})}
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		RedirectURL: "http://127.0.0.1:1/", Client: client, PreregisteredClient: &oauthex.ClientCredentials{ClientID: "me"},
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			to, err := url.Parse(args.URL)
			require.NoError(t, err)
			if to.Host == "authorize.test" {
				sent = to
			}
			return nil, errNobody
		},
	})
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server, nil)
	require.NoError(t, err)
	err = Authorize(t.Context(), client, handler, req, resp)
	require.Equal(t, server, req.URL.String())
	return sent, err
}

// roundTripper answers requests with JSON, or with 404 and nothing.
type roundTripper func(*http.Request) string

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	body := f(r)
	if body == "" {
		resp.StatusCode = http.StatusNotFound
	}
	resp.Body = io.NopCloser(strings.NewReader(body))
	return resp, nil
}

func TestMetadataAreAskedOnlyWhereTheSDKMayAsk(t *testing.T) {
	server, err := url.Parse("https://a.test/mcp/?x=1")
	require.NoError(t, err)
	var all []string
	for _, at := range candidates(server, http.Header{"Www-Authenticate": {
		`Bearer resource_metadata="http://b.test/metadata"`, `Bearer resource_metadata="ftp://b.test"`, `Bearer realm="x"`, `Bearer resource_metadata="https://b.test/metadata"`,
	}}) {
		all = append(all, at.String())
	}
	require.Equal(t, []string{
		"https://b.test/metadata",
		"https://a.test/.well-known/oauth-protected-resource/mcp?x=1",
		"https://a.test/.well-known/oauth-protected-resource/mcp",
		"https://a.test/.well-known/oauth-protected-resource/mcp/?x=1",
		"https://a.test/.well-known/oauth-protected-resource/mcp/",
		"https://a.test/.well-known/oauth-protected-resource?x=1",
		"https://a.test/.well-known/oauth-protected-resource",
	}, all)
}

// The handlers of the SDK read challenges of the scheme Bearer alone. The first one with scopes counts.
func TestHandlersSeeTheScopesOfTheSchemeDPoP(t *testing.T) {
	for said, want := range map[string]struct {
		scope string
		asks  bool // the handler goes on
	}{
		`DPoP error="insufficient_scope", scope="write", algs="ES256"`:      {"write", true},
		`dpop scope=write, error=insufficient_scope`:                        {"write", true},
		`DPoP error="insufficient_scope"`:                                   {"read", true},
		`Bearer error="insufficient_scope", scope="low", DPoP scope="high"`: {"low", true},
		`DPoP algs="ES256", Bearer error="insufficient_scope", scope="low"`: {"low", true},
		`DPoP error="insufficient_scope", scope="a\", Bearer scope=\"b"`:    {"read", true},
		`DPoP error="invalid_token", scope="write"`:                         {"", false},
		`Basic error="insufficient_scope", scope="write"`:                   {"", false},
	} {
		resp := &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Www-Authenticate": {said}}, Body: http.NoBody}
		address, err := refused(t, "https://a.test/mcp", "https://a.test/mcp", "/.well-known/oauth-protected-resource/mcp", resp)
		require.Equal(t, []string{said}, resp.Header.Values("WWW-Authenticate"))
		if !want.asks {
			require.NoError(t, err, said)
			require.Nil(t, address, said)
			continue
		}
		require.ErrorIs(t, err, errNobody, said)
		require.Equal(t, want.scope, address.Query().Get("scope"), said)
	}
}

func TestRefusalCannotHaveManyPlacesAsked(t *testing.T) {
	server, err := url.Parse("https://mcp.test/mcp")
	require.NoError(t, err)
	header := http.Header{}
	for i := range 100 {
		header.Add("WWW-Authenticate", "Basic")
		header.Add("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="https://victim.test/%d"`, i))
	}
	all := candidates(server, header)
	require.Equal(t, "https://victim.test/3", all[3].String())
	for _, at := range all[4:] {
		require.Equal(t, "mcp.test", at.Host)
	}
}
