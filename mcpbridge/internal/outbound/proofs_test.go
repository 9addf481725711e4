package outbound

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/proof"
	"github.com/mcpactor/mcpactor/internal/proof/prooftest"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/bridgetest"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// boundTokens are credentials with a token that is bound to a key.
type boundTokens struct {
	key crypto.Signer

	mu        sync.Mutex
	token     string
	refreshes int
}

func newBoundTokens(t testing.TB) *boundTokens {
	key, err := proof.NewKey()
	require.NoError(t, err)
	return &boundTokens{key: key, token: "DPoP old"}
}

func (b *boundTokens) Headers(context.Context) (http.Header, error) {
	return nil, errors.New("the token is bound")
}

func (b *boundTokens) BoundHeaders(context.Context) (http.Header, crypto.Signer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return http.Header{"Authorization": {b.token}}, b.key, nil
}

func (b *boundTokens) Refresh(_ context.Context, req *http.Request, _ *http.Response) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if req.Header.Get("DPoP") != "" {
		return errors.New("credentials have a proof")
	}
	b.token = "DPoP new"
	b.refreshes++
	return nil
}

// resource is a server that wants a token and proofs. It is an http.RoundTripper.
type resource struct {
	check prooftest.Checker
	wants string // the token

	mu       sync.Mutex
	requests []string
	bodies   []string
}

func (p *resource) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	p.ServeHTTP(w, req)
	resp := w.Result()
	resp.Request = req
	return resp, nil
}

func (p *resource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := ""
	if r.Body != nil {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		body = string(data)
	}
	p.mu.Lock()
	p.requests = append(p.requests, r.Method+" "+r.URL.Path)
	p.bodies = append(p.bodies, body)
	p.mu.Unlock()
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "DPoP ")
	_, code := p.check.Check(w, r, token)
	if code == "" && token != p.wants {
		code = "invalid_token"
	}
	switch {
	case code != "":
		w.Header().Set("WWW-Authenticate", `DPoP algs="ES256", error="`+code+`"`)
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/moved":
		http.Redirect(w, r, "/mcp?x=y", http.StatusTemporaryRedirect)
	default:
		fmt.Fprint(w, "welcome")
	}
}

// proving returns the sender of a session whose requests a resource answers.
func proving(t testing.TB, p *resource, c mcpbridge.Credentials) *Sender {
	client := NewClient(&mcpbridge.Server{URL: "http://test/mcp"})
	p.check.Origin = "http://test"
	client.transport = newOnce(p, false)
	return NewSender(client, &transport.Session{Cut: context.Background(), Credentials: c})
}

// sendOne sends a request, and returns the answer.
func sendOne(t testing.TB, s *Sender, method, path string) (int, string) {
	req := httptest.NewRequest(method, "http://test"+path, nil)
	if method == http.MethodPost {
		req = httptest.NewRequest(method, "http://test"+path, strings.NewReader("{}"))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("{}")), nil }
	}
	resp, err := s.Send(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

func TestEachRequestCarriesItsOwnProof(t *testing.T) {
	for name, c := range map[string]struct {
		nonces int
		ahead  time.Duration
		first  int // how many requests the first one takes
		each   int // how many each of the others takes
	}{
		"no nonces":           {0, 0, 1, 1},
		"the last nonce":      {1, 0, 2, 1},
		"its clock is ahead":  {0, 5 * time.Minute, 2, 1},
		"its clock is behind": {0, -5 * time.Minute, 2, 1},
		"both":                {1, 5 * time.Minute, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p, b := &resource{wants: "old", check: prooftest.Checker{Nonces: c.nonces, Ahead: c.ahead}}, newBoundTokens(t)
			s := proving(t, p, b)
			for i, method := range []string{"POST", "POST", "GET", "DELETE"} {
				before := len(p.requests)
				status, body := sendOne(t, s, method, "/mcp?session=1")
				require.Equal(t, 200, status, "%v", p.check.Err())
				require.Equal(t, "welcome", body)
				want := c.each
				if i == 0 {
					want = c.first
				}
				require.Len(t, p.requests, before+want)
			}
			status, _ := sendOne(t, s, "POST", "/moved")
			require.Equal(t, 200, status, "%v", p.check.Err())
			require.Equal(t, []string{"POST /moved", "POST /mcp"}, p.requests[len(p.requests)-2:])
			for i, request := range p.requests {
				require.Equal(t, strings.HasPrefix(request, "POST"), p.bodies[i] == "{}", request)
			}
			require.Zero(t, b.refreshes)

			another := NewSender(s.client, &transport.Session{Cut: context.Background(), Credentials: b})
			before := len(p.requests)
			sendOne(t, another, "POST", "/mcp")
			require.Len(t, p.requests, before+1, "the sessions of a server share what it has said")

			p.wants = "new"
			before = len(p.requests)
			status, _ = sendOne(t, s, "POST", "/mcp")
			require.Equal(t, 200, status)
			require.Len(t, p.requests, before+2, "a token that is refused is refreshed")
			require.Equal(t, 1, b.refreshes)
		})
	}
}

// A refusal of the proof and one of the token may follow each other.
func TestRefreshFollowsARefusalOfTheProof(t *testing.T) {
	p, b := &resource{wants: "new", check: prooftest.Checker{Nonces: 1}}, newBoundTokens(t)
	status, _ := sendOne(t, proving(t, p, b), "POST", "/mcp")
	require.Equal(t, 200, status, "%v", p.check.Err())
	require.Len(t, p.requests, 3)
	require.Equal(t, 1, b.refreshes)
}

func TestManyRequestsAtOnceWithNoncesThatChange(t *testing.T) {
	const inFlight, each = 64, 8
	p, b := &resource{wants: "old", check: prooftest.Checker{Nonces: inFlight * (each + 1), Ahead: 5 * time.Minute}}, newBoundTokens(t)
	s := proving(t, p, b)
	var all sync.WaitGroup
	for range inFlight {
		all.Go(func() {
			for range each {
				if status, _ := sendOne(t, s, "POST", "/mcp"); status != 200 {
					t.Error(status)
				}
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, len(p.requests), inFlight*(each+1), "only the first of each may be refused")
	require.Zero(t, b.refreshes)
}

func TestRefusalOfASecondProofIsOneOfTheCredentials(t *testing.T) {
	for name, c := range map[string]struct {
		nonce   string // n is another one each time
		code    string
		body    bool // can be read again
		posts   int
		refresh int
	}{
		"another nonce each time":    {"n", "use_dpop_nonce", true, 4, 1},
		"no other nonce":             {"", "use_dpop_nonce", true, 2, 1},
		"another proof, and no help": {"", "invalid_dpop_proof", true, 2, 1},
		"another code":               {"n", "invalid_token", true, 2, 1},
		"a body that is gone":        {"n", "use_dpop_nonce", false, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			posts, b := 0, newBoundTokens(t)
			s := signed(t, b)
			s.client.transport = newOnce(bridgetest.Answering(func(req *http.Request) (*http.Response, error) {
				posts++
				headers := []string{"Www-Authenticate: DPoP error=" + c.code}
				if c.nonce != "" {
					headers = append(headers, fmt.Sprint("DPoP-Nonce: ", c.nonce, posts))
				}
				return bridgetest.Says(401, "", "no", headers...)(req)
			}), false)
			ex := wire.NewExchange(t.Context(), nil, true)
			req := httptest.NewRequest("POST", "http://test", strings.NewReader("{}")).WithContext(ex)
			if c.body {
				req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("{}")), nil }
			}
			resp, err := s.Send(req)
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, "no", string(body))
			require.Equal(t, 401, resp.StatusCode)
			require.Equal(t, c.posts, posts)
			require.Equal(t, c.refresh, b.refreshes)
			require.True(t, ex.MayHaveReached())
		})
	}
}

func TestKeyThatIsNotOfTheTokenIsNotUsed(t *testing.T) {
	b := newBoundTokens(t)
	b.token = "Bearer old"
	s := signed(t, b)
	s.client.transport = bridgetest.Answering(func(req *http.Request) (*http.Response, error) {
		require.Equal(t, "Bearer old", req.Header.Get("Authorization"))
		require.NotContains(t, req.Header, "Dpop")
		return bridgetest.Says(200, "", "welcome")(req)
	})
	status, _ := sendOne(t, s, "POST", "")
	require.Equal(t, 200, status)
}

// broken is a key that can sign some times, and then fails or panics.
type broken struct {
	crypto.Signer
	left   int
	panics bool
}

func (b *broken) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	if b.left--; b.left >= 0 {
		return b.Signer.Sign(random, digest, opts)
	}
	if b.panics {
		panic("the card is gone")
	}
	return nil, errors.New("the card is gone with DPoP old-and-secret")
}

// A request that was refused for its proof, and could not be sent again, has not run.
func TestKeyThatCannotSignIsAnErrorOfTheCredentials(t *testing.T) {
	for _, panics := range []bool{false, true} {
		for _, signs := range []int{0, 1} {
			b := newBoundTokens(t)
			b.key, b.token = &broken{b.key, signs, panics}, "DPoP old-and-secret"
			s, posts := signed(t, b), 0
			s.client.transport = newOnce(bridgetest.Answering(func(req *http.Request) (*http.Response, error) {
				posts++
				return bridgetest.Says(401, "", "no", "Www-Authenticate: DPoP error=use_dpop_nonce", "DPoP-Nonce: n")(req)
			}), false)
			ex := wire.NewExchange(t.Context(), nil, true)
			req := httptest.NewRequest("POST", "http://test", strings.NewReader("{}")).WithContext(ex)
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("{}")), nil }
			_, err := s.Send(req)
			e := mcpbridge.AsError(err)
			require.Contains(t, e.Detail, "the card is gone")
			require.NotContains(t, e.Detail, "secret")
			require.Equal(t, signs, posts)
			require.False(t, ex.MayHaveReached())
			require.Zero(t, b.refreshes)
			if !panics {
				require.Equal(t, mcpbridge.Unauthorized, e.Class)
				require.Contains(t, e.Detail, "no proof of the key of the token: ")
			}
		}
	}
}

func BenchmarkRequest(b *testing.B) {
	bound := newBoundTokens(b)
	for name, c := range map[string]mcpbridge.Credentials{"token=bearer": new(token), "token=DPoP": bound} {
		b.Run(name, func(b *testing.B) {
			s := NewSender(NewClient(&mcpbridge.Server{URL: "http://test"}), &transport.Session{Cut: context.Background(), Credentials: c})
			resp := &http.Response{StatusCode: 200, Header: http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}}
			s.client.transport = bridgetest.Answering(func(*http.Request) (*http.Response, error) { return resp, nil })
			req := httptest.NewRequest("POST", "http://test/mcp", nil)
			b.ReportAllocs()
			for b.Loop() {
				s.Send(req)
			}
		})
	}
}
