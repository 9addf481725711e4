package challenge

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScopesAreFoundInAChallenge(t *testing.T) {
	for said, want := range map[string]string{
		`Bearer error="insufficient_scope", scope="b  a b"`:          "a b",
		`Bearer error=insufficient_scope,scope=a`:                    "a",
		`Bearer Scope = "a", error="insufficient_scope"`:             "a",
		`Bearer error="insufficient_scope"`:                          "",
		`DPoP error="insufficient_scope", scope="b a", algs="ES256"`: "a b",
		`Bearer error="insufficient_scope", scope="`:                 "",
	} {
		scopes, missing := MissingScopes(&http.Response{StatusCode: 403, Header: http.Header{"Www-Authenticate": {said}}})
		require.True(t, missing)
		require.Equal(t, want, scopes, said)
		_, missing = MissingScopes(&http.Response{StatusCode: 401, Header: http.Header{"Www-Authenticate": {said}}})
		require.False(t, missing)
	}
	_, missing := MissingScopes(&http.Response{StatusCode: 403})
	require.False(t, missing)
}

func TestSetOfScopesIsRequestedOncePerToken(t *testing.T) {
	var r Requested
	require.True(t, r.Add("a", "one"))
	require.False(t, r.Add("a", "one"))
	require.True(t, r.Add("a", "two"))
	for i := 1; i < MaxSets; i++ {
		require.True(t, r.Add(fmt.Sprint(i), ""))
	}
	require.False(t, r.Add("one too many", ""))
	require.True(t, r.Add("a", "three"))
}
