//go:build real

package real

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/login"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
)

// record returns the login that the program has kept, for the library.
func (o *hosted) record() *login.Record {
	o.t.Helper()
	data, err := os.ReadFile(o.logins()[0])
	require.NoError(o.t, err)
	var r login.Record
	require.NoError(o.t, json.Unmarshal(data, &r))
	return &r
}

// Each member has a supervisor, a login and a view of the store of its own, as on a machine of its own. One refreshes the login of the
// person for all. After somebody else has used the refresh token, one tries it, and all say at once that a login is needed.
func TestMembersShareALogin(t *testing.T) {
	o := newHosted(t, hosting{})
	stderr, _, status := o.login(nil)
	require.Zero(t, status, stderr)
	path := filepath.Join(o.dir, "store")
	file, err := resume.Open(path, resume.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	secret := make([]byte, 32)
	rand.Read(secret)
	var members []*member
	for range 4 {
		store, err := login.Shared(file, secret)
		require.NoError(t, err)
		members = append(members, o.member(login.Config{ID: account, Store: store, Remedy: "log in on the page of the test"}))
	}
	call := func() []error {
		errs := make([]error, len(members))
		var all sync.WaitGroup
		for i, m := range members {
			all.Go(func() {
				user, err := m.call(o)
				if errs[i] = err; err == nil && user != account {
					errs[i] = errors.New(user)
				}
			})
		}
		all.Wait()
		return errs
	}
	require.NoError(t, members[0].Keep(t.Context(), o.record()))
	require.NoError(t, errors.Join(call()...))
	for round := range 3 {
		o.refused.Store(members[0].token(o), true)
		require.NoError(t, errors.Join(call()...))
		require.Equal(t, round+1, o.authority().asked("refresh_token"))
	}

	kept, err := members[1].Kept(t.Context())
	require.NoError(t, err)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.False(t, bytes.Contains(data, []byte(kept.Token.RefreshToken)))
	stolen, err := o.authority().post(t.Context(), "/token", url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {kept.Token.RefreshToken}, "client_id": {kept.Client.ClientID}, "resource": {o.url},
	})
	require.NoError(t, err)
	require.NotEmpty(t, stolen["access_token"])
	o.refused.Store(kept.Token.AccessToken, true)
	for _, err := range call() {
		require.ErrorIs(t, err, messages.CodeUnauthorized)
		require.ErrorContains(t, err, "log in on the page of the test")
	}
	require.Equal(t, 3+1+1, o.authority().asked("refresh_token"), "the thief, and one member")

	stderr, _, status = o.login(nil)
	require.Zero(t, status, stderr)
	require.NoError(t, members[3].Keep(t.Context(), o.record()))
	require.NoError(t, errors.Join(call()...))
}
