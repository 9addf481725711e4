package browser

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/oauthresource"
	"github.com/mcpactor/mcpactor/internal/proof"
	"github.com/mcpactor/mcpactor/login"
)

// All facts, and the way that they lead to.
func TestWaysInTheirOrder(t *testing.T) {
	for facts := range 32 {
		is := func(n int) bool { return facts>>n&1 == 1 }
		given, kept, documents, defect, registers := is(0), is(1), is(2), is(3), is(4)
		c := choice{given: given, kept: kept, document: "https://me.example/client.json", server: &oauthresource.Server{AuthServerMeta: oauthex.AuthServerMeta{
			Issuer: "https://as.example", ClientIDMetadataDocumentSupported: documents,
		}}}
		if defect {
			c.defect = errors.New("it is gone")
		}
		if registers {
			c.server.RegistrationEndpoint = "https://as.example/register"
		}
		want := ""
		switch {
		case given:
			want = byGiven
		case documents && !defect:
			want = byDocument
		case kept:
			want = byGiven
		case registers:
			want = byRegistration
		}
		way, err := c.way()
		require.Equal(t, want, way, "%+v", c)
		require.Equal(t, want == "", err != nil)
	}
}

// A server could name the right authorization server first, and another one when it is asked again.
func TestLoginGoesToTheAuthorizationServerThatWasChecked(t *testing.T) {
	for want, o := range map[string]Options{"does not match pre-registered credentials issuer": {ClientID: "mine", ClientSecret: "hush"}, "has changed its authorization server during the login": {}} {
		t.Run(want, func(t *testing.T) {
			s, other := newScripted(t), newScripted(t)
			s.moved = other.URL
			person := &screen{open: func(address *url.URL) { back(t, address, url.Values{"code": {"the-code"}}) }}
			o.Asking, o.Err, o.Timeout = Waiting, person, time.Minute
			detail, _ := remedyOf(t, s.refuse(t, s.login(t, o), http.StatusUnauthorized, ""))
			require.Contains(t, detail, want)
			require.NotContains(t, fmt.Sprint(other.requests()), "hush")
			require.False(t, s.isKept())
		})
	}
}

func TestServerThatListsNoClientsWithoutASecretTakesNoDocument(t *testing.T) {
	for methods, takes := range map[string]bool{"": true, "none": true, "client_secret_basic none": true, "client_secret_basic": false} {
		c := choice{server: &oauthresource.Server{AuthServerMeta: oauthex.AuthServerMeta{
			ClientIDMetadataDocumentSupported: true, TokenEndpointAuthMethodsSupported: strings.Fields(methods), RegistrationEndpoint: "https://as.example/register",
		}}}
		way, err := c.way()
		require.NoError(t, err)
		require.Equal(t, takes, way == byDocument, methods)
	}
	way, err := choice{}.way()
	require.NoError(t, err)
	require.Equal(t, byRegistration, way, "without metadata, as in 2025-03-26")
}

// seen is what a login has shown.
type seen struct {
	said    string   // to the person
	address *url.URL // of the authorization server
	err     error
	kept    *login.Record
}

// logIn has a person log in.
func (s *scripted) logIn(t *testing.T, o Options) (r seen) {
	t.Helper()
	addresses := make(chan *url.URL, 1)
	person := &screen{open: func(address *url.URL) {
		addresses <- address
		back(t, address, url.Values{"code": {"the-code"}})
	}}
	o.Asking, o.Err, o.Timeout = Waiting, person, time.Minute
	r.err = s.refuse(t, s.login(t, o), http.StatusUnauthorized, "")
	r.said = person.String()
	select {
	case r.address = <-addresses:
	default:
	}
	r.kept = s.record(t)
	return r
}

func TestEachWayIsTakenAndSaid(t *testing.T) {
	documents := map[string]any{"client_id_metadata_document_supported": true}
	t.Run("document", func(t *testing.T) {
		s, l := newScripted(t), newLibrary(t)
		s.metadata = documents
		r := s.logIn(t, Options{Document: l.url})
		require.NoError(t, r.err)
		require.Contains(t, r.said, "mcpactor: this program is known by its client document "+l.url+", as the server allows\n")
		require.Equal(t, l.url, r.address.Query().Get("client_id"))
		require.Regexp(t, `^http://127\.0\.0\.1:\d+/there$`, r.address.Query().Get("redirect_uri"))
		require.Equal(t, "document", r.kept.Way)
		require.False(t, r.kept.Given)
		require.Equal(t, s.url(), r.address.Query().Get("resource"))

		r = s.logIn(t, Options{Document: l.url, Redirect: "http://127.0.0.1:0/elsewhere"})
		require.Contains(t, r.said, "mcpactor: the client document "+l.url+" is not used: its redirect_uris lack http://127.0.0.1:0/elsewhere\nmcpactor: this program registers itself as a client\n")
	})
	t.Run("given", func(t *testing.T) {
		s, l := newScripted(t), newLibrary(t)
		s.metadata = documents
		r := s.logIn(t, Options{Document: l.url, ClientID: "mine", ClientSecret: "hush"})
		require.NoError(t, r.err)
		require.Contains(t, r.said, "this program is known as the client that you have registered\n")
		require.Equal(t, "mine", r.address.Query().Get("client_id"))
		require.Equal(t, "given", r.kept.Way)
		require.Zero(t, l.asked)

		l.answer = http.NotFound // the client that is kept comes after the document
		r = s.logIn(t, Options{Document: l.url})
		require.NoError(t, r.err)
		require.Contains(t, r.said, l.url+" is not used: it is answered with 404 Not Found\n")
		require.Contains(t, r.said, "this program is known as the client of the last login, which you have registered\n")
		require.Equal(t, "mine", r.address.Query().Get("client_id"))
		require.Equal(t, "hush", r.kept.Client.ClientSecret)
		require.NotContains(t, r.said, "hush")
		given := r.kept

		l.answer = nil
		r = s.logIn(t, Options{Document: l.url})
		require.Equal(t, l.url, r.address.Query().Get("client_id"))
		require.Empty(t, r.kept.Client.ClientSecret)

		other := newScripted(t) // the client is not registered there
		require.NoError(t, other.login(t, Options{}).kept.Keep(t.Context(), given))
		r = other.logIn(t, Options{})
		require.Contains(t, r.said, "this program registers itself as a client\n")
		require.Empty(t, r.kept.Client.ClientSecret)
	})
	t.Run("registered", func(t *testing.T) {
		s, l := newScripted(t), newLibrary(t)
		r := s.logIn(t, Options{Document: l.url})
		require.NoError(t, r.err)
		require.Contains(t, r.said, "the client document "+l.url+" is not used: the authorization server takes none\n")
		require.Contains(t, r.said, "this program registers itself as a client\n")
		require.Equal(t, "registered", r.address.Query().Get("client_id"))
		require.NotContains(t, s.logIn(t, Options{}).said, "document", "nobody has named one")
		require.Equal(t, "registered", r.kept.Way)
		require.Zero(t, l.asked, "the server takes no documents")
	})
	t.Run("none", func(t *testing.T) {
		s, l := newScripted(t), newLibrary(t)
		s.metadata = map[string]any{"registration_endpoint": nil}
		r := s.logIn(t, Options{Document: l.url})
		detail, remedy := remedyOf(t, r.err)
		require.Equal(t, "the authorization server "+s.URL+" registers no programs", detail)
		require.Equal(t, "register a client there, and name it with --client-id", remedy)
		require.Nil(t, r.address)

		s.metadata["client_id_metadata_document_supported"], l.answer = true, http.NotFound
		detail, _ = remedyOf(t, s.logIn(t, Options{Document: l.url}).err)
		require.Contains(t, detail, "registers no programs, and cannot use the client document")
	})
	t.Run("no metadata", func(t *testing.T) {
		s := newScripted(t)
		s.protected = map[string]any{"authorization_servers": []string{}}
		detail, _ := remedyOf(t, s.logIn(t, Options{}).err)
		require.Contains(t, detail, "names no authorization server")
		s.protected, s.metadata = nil, map[string]any{"issuer": "https://other.example"}
		detail, _ = remedyOf(t, s.logIn(t, Options{}).err)
		require.Contains(t, detail, "its metadata is that of the issuer https://other.example")
	})
}

// Nothing of a login goes to another authorization server that the MCP server names later.
func TestClientOfTheUserGoesToNoOtherAuthorizationServer(t *testing.T) {
	for _, before := range []bool{false, true} {
		s, other := newScripted(t), newScripted(t)
		r := s.logIn(t, Options{ClientID: "mine", ClientSecret: "hush"})
		require.NoError(t, r.err)
		if before { // the file of an earlier version
			r.kept.Issuer = ""
			require.NoError(t, s.login(t, Options{}).kept.Keep(t.Context(), r.kept))
		}
		s.protected = map[string]any{"authorization_servers": []string{other.URL}}
		detail, _ := remedyOf(t, s.logIn(t, Options{ClientID: "mine", ClientSecret: "hush"}).err)
		require.Equal(t, fmt.Sprintf(`the client "mine" has logged in at %s, and the server uses %s now`, hostOf(s.URL), hostOf(other.URL)), detail)
		require.Empty(t, other.requests())

		r = s.logIn(t, Options{})
		require.NoError(t, r.err)
		require.Equal(t, "registered", r.kept.Way)
		require.Equal(t, other.URL, r.kept.Issuer)
		for _, form := range other.requests() {
			require.NotContains(t, fmt.Sprint(form), "hush")
			require.NotContains(t, fmt.Sprint(form), "refresh-1")
		}
		require.NoError(t, s.logIn(t, Options{ClientID: "theirs"}).err)
	}
}

func TestWhatAnAuthorizationServerOffersIsSaid(t *testing.T) {
	s := newScripted(t)
	o := Offers(t.Context(), s.url())
	require.Equal(t, &Offered{Issuer: s.URL, Registration: true}, o)
	require.Equal(t, "the authorization server "+s.URL+" takes clients that you register, programs that register themselves", o.String())
	s.metadata = map[string]any{"registration_endpoint": nil, "client_id_metadata_document_supported": true}
	require.Equal(t, "the authorization server "+s.URL+" takes clients that you register, client documents", Offers(t.Context(), s.url()).String())
	s.metadata = map[string]any{"issuer": "https://other.example"}
	require.Nil(t, Offers(t.Context(), s.url()))
	require.Nil(t, Offers(t.Context(), "http://%zz"))

	require.Equal(t, "logged in by its client document", Words(byDocument))
	require.Equal(t, "logged in with a client you registered", Words(byGiven))
	require.Equal(t, "logged in with a client it registered itself", Words(byRegistration))
	require.Equal(t, "logged in by client credentials", Words(byCredentials))
	require.Equal(t, "logged in", Words(""))
}

// The key of a login is used if the MCP server asks for it, or the authorization server does. It is kept with tokens that are bound
// to it, and only with these.
func TestLoginWithAKey(t *testing.T) {
	for _, c := range []struct {
		protected, metadata map[string]any
		kind                string
		asks                bool // the authorization server
		proves              bool
	}{
		{kind: "Bearer"},
		{protected: map[string]any{"dpop_bound_access_tokens_required": true}, kind: "DPoP", proves: true},
		{protected: map[string]any{"dpop_bound_access_tokens_required": true}, kind: "Bearer", proves: true},
		{metadata: map[string]any{"dpop_signing_alg_values_supported": []string{"ES256"}}, kind: "Bearer"},
		{metadata: map[string]any{"dpop_signing_alg_values_supported": []string{"ES256"}}, kind: "DPoP", asks: true, proves: true},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			s := newScripted(t)
			s.protected, s.metadata = c.protected, c.metadata
			s.answer = func(w http.ResponseWriter, _ url.Values) {
				s.mu.Lock()
				defer s.mu.Unlock()
				if c.asks && len(s.proofs) == 1 {
					w.Header().Set("DPoP-Nonce", "n")
					reply(w, 400, map[string]any{"error": "use_dpop_nonce"})
					return
				}
				reply(w, 200, map[string]any{"access_token": "access", "token_type": c.kind, "expires_in": 3600})
			}
			r := s.logIn(t, Options{})
			if c.protected != nil && c.kind == "Bearer" { // the MCP server would refuse it
				require.ErrorContains(t, r.err, "the authorization server gives none")
				require.Nil(t, r.kept)
				return
			}
			require.NoError(t, r.err)
			require.Equal(t, c.proves, s.proofs[len(s.proofs)-1] != "")
			require.Equal(t, c.kind == "DPoP", len(r.kept.Key) > 0)
			if len(r.kept.Key) > 0 {
				_, _, err := proof.ParseKey(r.kept.Key)
				require.NoError(t, err)
			}
		})
	}
}
